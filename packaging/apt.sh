# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Functions: packages of another architecture or release of Debian, from the mirror that apt uses here. apt's own
# folders stay as they are.

debian_mirror() { # its address
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | head -n 1
}

# foreign_apt ARCHITECTURE RELEASE FOLDER [KINDS [COMPONENT]]: set `foreign` to an apt-get of its own, whose state is in
# FOLDER. It knows the packages of that architecture, and the sources if the KINDS are 'deb deb-src'. COMPONENT may be
# several words, and is main by default.
foreign_apt() {
    foreign="apt-get -qq -o APT::Architecture=$1 -o APT::Architectures::=$1 -o Dir::State=$3
        -o Dir::State::status=$3/status -o Dir::Cache=$3 -o Dir::Etc::sourcelist=$3/sources.list -o Dir::Etc::sourceparts=/dev/null"
    mkdir -p "$3/lists/partial" "$3/archives/partial"
    touch "$3/status"
    for kind in ${4-deb}; do
        echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(debian_mirror) $2 ${5-main}"
    done >"$3/sources.list"
    $foreign update
}

# unpack_packages FOLDER SYSROOT: what foreign_apt has downloaded to FOLDER
unpack_packages() {
    mkdir -p "$2"
    for package in "$1"/archives/*.deb; do dpkg-deb -x "$package" "$2"; done
    [ -e "$2/lib" ] || ln -s usr/lib "$2/lib" # Debian 13
    # libm.so is a link to /lib/TRIPLET/libm.so.6, which this machine may lack; then libm.a would be taken.
    find "$2" -type l -lname '/*' ! -lname "$2/*" -printf '%l\n%p\n' | while read -r target && read -r link; do
        ln -sfn "$2$target" "$link"
    done
}
