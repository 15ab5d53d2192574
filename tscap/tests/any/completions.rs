//! Shell completions, by the shells themselves: what is proposed behind words of tscap.

#[path = "../../examples/man/completions.rs"]
mod written;

use std::path::Path;
use std::process::Command;

use tscap_testkit::command::must;
use tscap_testkit::files;
use tscap_testkit::root::skip;

/// Words behind which a line is to be completed, and what must be proposed, and must not.
const CASES: [(&str, &[&str], &[&str]); 12] = [
    ("-i ", &["lo", "any"], &["a file"]),
    ("capture -i l", &["lo"], &["any", "a file"]),
    ("capture --interface=l", &["lo"], &["any"]),
    ("doctor -i ", &["lo"], &["a file"]),
    ("delay --in ", &["lo"], &["a file"]),
    ("-i lo --k", &["--keep-raw"], &["--help"]),
    ("-i lo --clock ", &["ktime", "tsc"], &[]),
    ("--keep-r", &["--keep-raw"], &[]),
    ("--vers", &["--version"], &[]),
    ("capture -i lo -w fi", &["file.pcapng"], &["--keep-raw"]),
    ("convert f", &["file.pcapng"], &["<IN.pcapng>"]),
    ("conv", &["convert"], &["compare"]),
];

fn has(shell: &str) -> bool {
    let found = Command::new(shell).arg("--version").output().is_ok();
    if !found {
        skip(&format!("{shell} is not installed"));
    }
    found
}

/// A folder with the completions, and with files that can be proposed.
fn folder() -> tempfile::TempDir {
    let folder = files::folder();
    written::write(folder.path()).expect("write the completions");
    for name in ["file.pcapng", "a file"] {
        std::fs::write(folder.path().join(name), "").expect("a file");
    }
    folder
}

fn check(shell: &str, proposed: impl Fn(&Path, &str) -> Vec<String>) {
    let folder = folder();
    for (line, wanted, unwanted) in CASES {
        let found = proposed(folder.path(), line);
        let has = |word: &&&str| found.iter().any(|it| it == **word);
        let missing: Vec<_> = wanted.iter().filter(|it| !has(it)).collect();
        let wrong: Vec<_> = unwanted.iter().filter(has).collect();
        let strange = found.iter().filter(|it| it.starts_with(['<', '[']));
        assert!(
            missing.is_empty(),
            "{shell}: tscap {line}: {missing:?} of {found:?}"
        );
        assert!(
            wrong.is_empty(),
            "{shell}: tscap {line}: {wrong:?} in {found:?}"
        );
        assert_eq!(strange.count(), 0, "{shell}: tscap {line}: {found:?}");
    }
}

/// What a script prints, in words; `$1` is the line behind the program's name.
fn run(folder: &Path, shell: &str, options: &[&str], script: &str, line: &str) -> Vec<String> {
    let mut command = Command::new(shell);
    command.args(options).args(["-c", script, shell, line]);
    command.current_dir(folder).env("TERM", "xterm");
    let text = must(&mut command);
    text.lines().map(|it| it.trim().to_owned()).collect()
}

/// The function that is registered gets what readline would give it: the words, where an `=`
/// is one by itself, and a colon too unless the user has taken it off COMP_WORDBREAKS.
const BASH: &str = r#"
source ./tscap.bash
COMP_LINE="tscap $1"
line=${1//=/ = }
[[ $COMP_WORDBREAKS == *:* ]] && line=${line//:/ : }
read -ra COMP_WORDS <<< "tscap $line"
case $1 in *' ' | *=) COMP_WORDS+=('') ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p tscap | sed 's/.*-F \([^ ]*\).*/\1/')
"$function" tscap "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn bash() {
    if has("bash") {
        check("bash", |folder, line| {
            run(folder, "bash", &["--norc"], BASH, line)
        });
    }
}

/// What stands up to the last colon of a word stays in the line: bash puts what is proposed behind
/// that, and not if a colon breaks no words.
#[test]
fn bash_completes_behind_a_colon() {
    if !has("bash") {
        return;
    }
    let folder = folder();
    let of = |script: &str, line| run(folder.path(), "bash", &["--norc"], script, line);
    let all = ["kernel", "module", "module-ordered", "perf"];
    for line in ["capture -i lo --clock tsc:", "-i lo --clock=tsc:"] {
        assert_eq!(of(BASH, line), all, "tscap {line}");
    }
    assert_eq!(of(BASH, "-i lo --clock=tsc:module-"), ["module-ordered"]);
    assert_eq!(of(BASH, "-i lo --reference ntp:x --clock tsc:p"), ["perf"]);
    // A word by itself.
    assert!(of(BASH, "-i lo --clock tsc ").iter().all(|it| it != "perf"));
    let whole = format!("COMP_WORDBREAKS=${{COMP_WORDBREAKS//:}}\n{BASH}");
    assert_eq!(of(&whole, "-i lo --clock tsc:p"), ["tsc:perf"]);
}

/// Behind a word is its description.
const FISH: &str = r#"
source ./tscap.fish
complete -C "tscap $argv[2]" | string replace -r '\t.*' ''
true
"#;

#[test]
fn fish() {
    if has("fish") {
        check("fish", |folder, line| {
            let found = run(folder, "fish", &["--no-config"], FISH, line);
            // A value behind an = is proposed with its option.
            let word = |it: String| match it.split_once('=') {
                Some((_, value)) => value.to_owned(),
                None => it,
            };
            found.into_iter().map(word).collect()
        });
    }
}

/// In a terminal of zsh's own: what compadd adds is printed.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
send() { zpty -w shell "$1" }
send 'PROMPT=; setopt no_beep; fpath=(. $fpath); autoload -Uz compinit; compinit -u -D; source ./_tscap'
send 'compadd() { local -a all; builtin compadd -O all "$@"; print -rl -- BEGIN $all END; builtin compadd "$@" }'
send 'bindkey "^I" complete-word; print -r RE""ADY'
while zpty -r shell line; do [[ $line == *READY* ]] && break; done
# The line editor has the terminal now: before that ^U would kill what is typed.
zpty -r shell line '*2004h*'
zpty -w -n shell "tscap $1"$'\t'
zpty -w -n shell $'\x15'"print -r DO\"\"NE"$'\n'
while zpty -r shell line; do [[ $line == *DONE* ]] && break; print -r -- "${line%$'\r\n'}"; done
zpty -d shell
"#;

#[test]
fn zsh() {
    if has("zsh") {
        check("zsh", |folder, line| run(folder, "zsh", &["-f"], ZSH, line));
    }
}
