"""onkel completion: a script by which the Tab key completes onkel's commands and options in bash, zsh or fish."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping

from onkel.cli.commands import COMMANDS, parsers

BASH = """_onkel() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} offered
    case ${{COMP_WORDS[1]}} in
{cases}
        *) offered="{commands} --help --version" ;;
    esac
    if [[ $COMP_CWORD -eq 1 ]]; then offered="{commands} --help --version"; fi
    COMPREPLY=($(compgen -W "$offered" -- "$word"))
    if [[ $COMP_CWORD -gt 1 && $word != -* ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _onkel onkel"""
ZSH = "autoload -U +X bashcompinit && bashcompinit"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.description = (
        'bash: eval "$(onkel completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc; '
        "fish: onkel completion fish > ~/.config/fish/completions/onkel.fish"
    )
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])
    parser.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    _, each = parsers(COMMANDS)
    if arguments.shell == "fish":
        print("\n".join(_fish(each)))
        return 0
    cases = "\n".join(f'        {name}) offered="{" ".join(_words(p))}" ;;' for name, p in each.items())
    script = BASH.format(cases=cases, commands=" ".join(each))
    print(f"{ZSH}\n{script}" if arguments.shell == "zsh" else script)
    return 0


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """Options, and the words that arguments may be."""
    choices = [str(word) for action in parser._actions if not action.option_strings for word in action.choices or ()]
    return [*choices, *(option for action in parser._actions for option in action.option_strings if option[:2] == "--")]


def _fish(each: Mapping[str, argparse.ArgumentParser]) -> list[str]:
    lines = []
    for name, parser in each.items():
        lines.append(f"complete -c onkel -n __fish_use_subcommand -a {name} -d {shlex.quote(COMMANDS[name][1])}")
        for action in parser._actions:
            there = f"complete -c onkel -n '__fish_seen_subcommand_from {name}'"
            if not action.option_strings and action.choices:
                lines.append(f"{there} -a {shlex.quote(' '.join(map(str, action.choices)))}")
            for option in (option for option in action.option_strings if option.startswith("--")):
                needs = "" if action.nargs == 0 else " -r"
                help = shlex.quote((action.help or "").replace("%%", "%"))
                lines.append(f"{there} -l {option[2:]}{needs} -d {help}")
    return lines
