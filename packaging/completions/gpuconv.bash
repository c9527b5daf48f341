# SPDX-License-Identifier: MIT
# Bash completion for gpuconv. Options and their words come from `gpuconv --help all` and
# the lists, so that they are those of the gpuconv that is installed.

# One line an option: name, letter, argument, words, text; with tabs between.
_gpuconv_options() {
    local variants codecs
    variants=$("$1" --list-variants 2>/dev/null | awk '$2 ~ /^(cpu|cuda)$/ { printf "%s ", $1 }')
    codecs=$("$1" --list-codecs 2>/dev/null | awk '{ printf "%s ", $1 }')
    "$1" --help all 2>/dev/null | awk -v variants="$variants" -v codecs="$codecs" '
        function flush() {
            if (name == "") return
            words = ""
            if (match(text, /(: [a-z0-9-]+(, [a-z0-9-]+)*|,) or [a-z0-9-]+( \(default [^)]*\))?$/)) {
                words = substr(text, RSTART + 1)
                sub(/ \(default.*/, "", words)
                gsub(/,? or |, /, " ", words)
                sub(/^ +/, "", words)
            }
            if (text ~ /--list-variants$/) words = variants
            if (text ~ /--list-codecs$/) words = codecs
            sub(/ +$/, "", words)
            printf "%s\t%s\t%s\t%s\t%s\n", name, letter, argument, words, text
            name = ""
        }
        /^  (-[a-zA-Z0-9], )?--[a-z]/ {
            flush()
            letter = substr($1, 1, 2) == "--" ? "" : substr($1, 2, 1)
            if (letter != "") $1 = ""
            sub(/^ +/, "")
            name = $1
            rest = $0
            sub(/^[^ ]+ ?/, "", rest)
            argument = match(rest, /^[A-Z][A-Z0-9\/x|]*/) ? substr(rest, 1, RLENGTH) : ""
            text = substr(rest, length(argument) + 1)
            sub(/^ +/, "", text)
            next
        }
        name != "" && /^                        / { sub(/^ +/, ""); text = text (text == "" ? "" : " ") $0; next }
        { flush() }
        END { flush() }'
}

_gpuconv() {
    local cur prev words cword IFS=$' \t\n' program=${COMP_WORDS[0]} name= argument= values= i filter=
    cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    # Readline takes --name=value and gaussian:2 apart.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $prev == --?* ]]; then
        IFS='|' read -r name argument values < <(_gpuconv_options "$program" |
            awk -F '\t' -v name="$prev" '$1 == name { print $1 "|" $3 "|" $4 }')
    fi
    if [[ -n $values ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
        return
    fi
    case $argument in
    DIR) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
    FILTER) filter=yes ;;
    FILE*) filter= ;;
    ?*) COMPREPLY=(); return ;;
    esac
    if [[ -z $argument && $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_gpuconv_options "$program" |
            awk -F '\t' '{ print $1; if ($2 != "") print "-" $2 }')" -- "$cur")
        return
    fi
    if [[ -z $argument ]]; then # the first operand is the filter
        filter=yes
        for ((i = 1; i < COMP_CWORD; i++)); do
            case ${COMP_WORDS[i]} in
            --compare | --digest) filter= ;;
            -* | =) ;;
            *) [[ ${COMP_WORDS[i - 1]} == --* || ${COMP_WORDS[i - 1]} == = ]] &&
                _gpuconv_options "$program" | awk -F '\t' -v name="${COMP_WORDS[i - 1]}" \
                    '$1 == name && $3 != "" { found = 1 } END { exit !found }' || filter= ;;
            esac
        done
    fi
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    if [[ -n $filter ]]; then
        local before=
        [[ $cur == *,* ]] && before=${cur%,*},
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -P "$before" -W "$({
            "$program" --list
            [[ $name == --bench-filter ]] && "$program" --list-bench-filters
        } 2>/dev/null | awk '/^  [^ ]/ && $1 ~ /^[A-Za-z0-9_-]+(:[A-Z]|$)/ { sub(/:.*/, ":", $1); print $1 }')" -- "${cur##*,}")
    fi
}

complete -F _gpuconv gpuconv
