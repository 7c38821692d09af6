"""Completion in a shell: prints the script that makes Tab complete dmsim's commands, options, hosts, clusters and releases.

The script asks dmsim itself (`dmsim completion words -- WORD...`, the last WORD being the one that is typed), so it goes with
every version. The answer is a line for each word, after a tab what it means, and the line `:` where files fit, too.

Example:
  eval "$(dmsim completion bash)"                                    # in ~/.bashrc
  eval "$(dmsim completion zsh)"                                     # in ~/.zshrc, after compinit
  dmsim completion fish > ~/.config/fish/completions/dmsim.fish
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from simulator.cli.completing import complete
from simulator.reading import InputError

_BASH: Final = r"""# bash completion for dmsim
_dmsim() {
    local cur=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME} word text files=
    [[ $cur == = ]] && cur=
    COMPREPLY=()
    while IFS=$'\t' read -r word text; do
        if [[ $word == : ]]; then files=1; else COMPREPLY+=("$word"); fi
    done < <("$program" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ $files ]]; then
        compopt -o filenames 2>/dev/null  # macOS' own bash has none
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
    fi
}
complete -F _dmsim dmsim
"""

_ZSH: Final = r"""#compdef dmsim
_dmsim() {
    local line files= option=
    local -a before found
    before=("${(@)words[2,CURRENT-1]}")
    if [[ $PREFIX == --*=* ]]; then
        option=${PREFIX%%=*}
        compset -P '--*='
    fi
    while IFS= read -r line; do
        if [[ $line == : ]]; then
            files=1
        else
            found+=("${line/$'\t'/:}")
        fi
    done < <("${(e)words[1]/#\~/$HOME}" completion words -- "${before[@]}" ${option:+"$option"} "$PREFIX" 2>/dev/null)
    (( $#found )) && _describe dmsim found
    [[ -n $files ]] && _files
}
if [[ $funcstack[1] == _dmsim ]]; then _dmsim "$@"; else compdef _dmsim dmsim; fi
"""

_FISH: Final = r"""# fish completion for dmsim
function __dmsim_complete
    set -l before (commandline -opc)
    set -l program (string replace -r -- '^~' "$HOME" $before[1])
    set -e before[1]
    set -l token (commandline -ct)
    for line in ($program completion words -- $before "$token" 2>/dev/null)
        if test "$line" = :
            set -l option (string match -r -- '^--[^=]*=' "$token")
            __fish_complete_path (string replace -r -- '^--[^=]*=' '' "$token") | string replace -r -- '^' "$option"
        else
            printf '%s\n' "$line"
        end
    end
end
complete -c dmsim -f -k -a '(__dmsim_complete)'
"""

_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=(*_SCRIPTS, "words"), help="the shell; or words, which is how its script asks")
    help_text = "with words, after --: the line without dmsim, up to the cursor"
    parser.add_argument("words", metavar="WORD", nargs=argparse.REMAINDER, help=help_text)  # there may be a -- among them


def run(options: argparse.Namespace) -> int:
    """Print the script, or the answer. Always exits 0. Raises InputError."""
    if options.shell != "words":
        if options.words:
            raise InputError("", "", f'"{options.words[0]}" follows the shell', "leave it out")
        sys.stdout.write(_SCRIPTS[options.shell])
        return 0
    found = complete(options.words[1:] if options.words[:1] == ["--"] else options.words)
    sys.stdout.writelines(f"{word}\t{text}".rstrip() + "\n" for word, text in found.words.items())
    sys.stdout.write(":\n" if found.files else "")
    return 0
