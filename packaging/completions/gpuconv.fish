# SPDX-License-Identifier: MIT
# Fish completion for gpuconv. Options and their words come from `gpuconv --help all` and
# the lists, so that they are those of the gpuconv that is installed.

# One line an option: name, letter, argument, words, text; with tabs between.
function __gpuconv_options
    set -l variants (gpuconv --list-variants 2>/dev/null | awk '$2 ~ /^(cpu|cuda)$/ { print $1 }')
    set -l codecs (gpuconv --list-codecs 2>/dev/null | awk '{ print $1 }')
    gpuconv --help all 2>/dev/null | awk -v variants="$variants" -v codecs="$codecs" '
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
end

# Filters, and those of a second list, after what stands before the last comma.
function __gpuconv_filters
    set -l before (string match -r '.*,' -- (commandline -ct))
    begin
        gpuconv --list
        test -n "$argv"; and gpuconv $argv
    end 2>/dev/null | awk -v before="$before" '
        function flush() { if (name != "") print before name "\t" text; name = "" }
        /^  [^ ]/ {
            flush()
            if ($1 !~ /^[A-Za-z0-9_-]+(\[?:[A-Za-z]|$)/) next
            name = $1; sub(/\[:.*/, "", name); sub(/:.*/, ":", name); $1 = ""; sub(/^ +/, ""); text = $0; next
        }
        /^   / { sub(/^ +/, ""); text = text (text == "" ? "" : " ") $0 }
        END { flush() }'
end

# Is the word that is completed the first operand?
function __gpuconv_first
    set -l words (commandline -opc)
    set -e words[1]
    set -l takes (__gpuconv_options | awk -F '\t' '$3 != "" { print $1 }')
    set -l value no
    for word in $words
        if test $value = yes
            set value no
        else if contains -- $word $takes
            set value yes
        else if contains -- "$word" --compare --digest; or not string match -q -- '-*' $word
            return 1
        end
    end
    return 0
end

complete -c gpuconv -n __gpuconv_first -a '(__gpuconv_filters)'
__gpuconv_options | while read -l -d \t name letter argument words text
    set -l rule -c gpuconv -l (string sub -s 3 -- $name) -d "$text"
    test -n "$letter"; and set -a rule -s $letter
    if test -n "$words"
        set -a rule -x -a "$words"
    else if test $name = --bench-filter
        set -a rule -x -a '(__gpuconv_filters --list-bench-filters)'
    else if test "$argument" = FILTER
        set -a rule -x -a '(__gpuconv_filters)'
    else if test "$argument" = DIR
        set -a rule -x -a '(__fish_complete_directories)'
    else if string match -q 'FILE*' -- "$argument"
        set -a rule -r
    else if test -n "$argument"
        set -a rule -x
    end
    complete $rule
end
