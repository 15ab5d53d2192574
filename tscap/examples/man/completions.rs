//! Shell completions: what clap makes of the options, and what it does not know: names of
//! interfaces, network namespaces and containers, and that `tscap -i` is a capture.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use clap::{ArgGroup, Command, CommandFactory as _};
use clap_complete::Shell;
use tscap_cli::Cli;

const BASH: &str = include_str!("more.bash");
const ZSH: &str = include_str!("more.zsh");
/// `tscap -i` is `tscap capture -i`, unless the word may yet become an option of tscap itself.
const ZSH_CAPTURE: &str = "\
    if [[ $words[2] == -?* && $words[2] != (-h|-V|--help|--version) && \
        $CURRENT:$words[2] != 2:--(h|v)* ]]; then
        words=($words[1] capture \"${(@)words[2,-1]}\")
        (( CURRENT += 1 ))
    fi
";
const FISH: &str = include_str!("more.fish");

/// What is named by the values of options that clap proposes nothing or files for: how the
/// functions are called that list them, and the options.
const NAMES: [(&str, &[&str]); 3] = [
    ("interfaces", &["interface", "in", "out", "reflect", "rtt"]),
    ("namespaces", &["netns", "peer-netns"]),
    ("containers", &["container"]),
];

/// Writes them into `folder`.
pub fn write(folder: &Path) -> io::Result<()> {
    let tscap = visible();
    for (shell, more) in [
        (Shell::Bash, bash as fn(String, &Command) -> String),
        (Shell::Zsh, zsh),
        (Shell::Fish, fish),
    ] {
        let path = clap_complete::generate_to(shell, &mut tscap.clone(), "tscap", folder)?;
        let generated = fs::read_to_string(&path)?;
        fs::write(&path, more(generated, &tscap))?;
    }
    Ok(())
}

/// The commands without the hidden options: those of tcpdump and dumpcap that
/// `tscap capture` answers are not to be proposed.
fn visible() -> Command {
    let mut tscap = Cli::command();
    let names = tscap.get_subcommands().map(|it| it.get_name().to_owned());
    for name in names.collect::<Vec<_>>() {
        tscap = tscap.mut_subcommand(name, |all| {
            let visible = all.get_arguments().filter(|it| !it.is_hide_set()).cloned();
            // Options name groups; which options are in them is nothing to a completion.
            let groups = all
                .get_groups()
                .map(|it| ArgGroup::new(it.get_id().clone()));
            let groups: Vec<_> = groups.collect();
            let about = all.get_about().cloned().unwrap_or_default();
            // clap wants a name with a static lifetime, unless it has a feature that tscap lacks.
            let name: &'static str = all.get_name().to_owned().leak();
            Command::new(name)
                .about(about)
                .args(visible.collect::<Vec<_>>())
                .groups(groups)
        });
    }
    tscap
}

/// The options whose values one of the functions lists, with their dashes: of a command, or
/// of all.
fn named<'a>(commands: impl Iterator<Item = &'a Command>, longs: &[&str]) -> BTreeSet<String> {
    let arguments = commands.flat_map(Command::get_arguments);
    let found = arguments.filter(|it| it.get_long().is_some_and(|long| longs.contains(&long)));
    let names = found.flat_map(|it| {
        let long = it.get_long().map(|long| format!("--{long}"));
        long.into_iter()
            .chain(it.get_short().map(|it| format!("-{it}")))
    });
    names.collect()
}

/// clap's function stays, and one around it takes its place.
fn bash(generated: String, tscap: &Command) -> String {
    let end = generated
        .rfind("\nif [[ \"${BASH_VERSINFO")
        .expect("what registers it");
    let mut more = BASH.to_owned();
    for (function, longs) in NAMES {
        let options: Vec<_> = named(tscap.get_subcommands(), longs).into_iter().collect();
        let place = format!("@{}@", function.to_uppercase());
        more = more.replace(&place, &options.join(" | "));
    }
    format!("{}{more}", &generated[..end])
}

/// A line of a value and its help, with colons in the value told from the one behind it.
fn colons_escaped(line: &str) -> String {
    match line.split_once(r#"\:""#) {
        Some((value, help)) if !value.contains([' ', '\'']) => {
            let value = value.replace(r"\:", r"\\\:");
            format!(r#"{value}\:"{help}"#)
        }
        _ => line.to_owned(),
    }
}

/// The options name the functions, and words that begin with an option get the command.
fn zsh(generated: String, tscap: &Command) -> String {
    let mut text = String::new();
    for line in generated.lines() {
        let line = &colons_escaped(line);
        let option = line.trim_start_matches('\'');
        // Those that exclude it stand before it, in parentheses.
        let option = option.strip_prefix('(').and_then(|it| it.split_once(')'));
        let option = option.map_or(line.trim_start_matches('\''), |(_, option)| option);
        let option = option.trim_start_matches('*');
        let listed = NAMES.iter().find(|(_, longs)| {
            let options = named(tscap.get_subcommands(), longs);
            let mut heads = options.iter().map(|it| {
                if it.starts_with("--") {
                    format!("{it}=[")
                } else {
                    format!("{it}+[")
                }
            });
            heads.any(|it| option.starts_with(&it))
        });
        text += &match (listed, line.strip_suffix(":_default' \\")) {
            (Some((function, _)), Some(start)) => format!("{start}:_tscap_{function}' \\"),
            _ => line.to_owned(),
        };
        text.push('\n');
        if line == "_tscap() {" {
            text += ZSH_CAPTURE;
        }
    }
    let end = text
        .rfind("\nif [ \"$funcstack[1]\"")
        .expect("what registers it");
    text.insert_str(end + 1, &format!("{ZSH}\n"));
    text
}

/// Lines of `tscap capture` stand once more for words that begin with an option.
fn fish(generated: String, tscap: &Command) -> String {
    let mut text = generated.clone() + FISH;
    let capture = "-n \"__fish_tscap_using_subcommand capture\"";
    // Values stand in lines of their own.
    let begin = "complete -c tscap ";
    for entry in generated
        .split(begin)
        .filter(|entry| entry.starts_with(capture))
    {
        text += begin;
        text += &entry.replace(capture, "-n __tscap_is_capture");
    }
    for command in tscap.get_subcommands() {
        for (function, longs) in NAMES {
            for option in named([command].into_iter(), longs) {
                let option = match option.strip_prefix("--") {
                    Some(long) => format!("-l {long}"),
                    None => format!("-s {}", &option[1..]),
                };
                let name = command.get_name();
                let mut conditions = vec![format!("\"__fish_tscap_using_subcommand {name}\"")];
                conditions.extend((name == "capture").then(|| "__tscap_is_capture".to_owned()));
                for condition in conditions {
                    let list = format!("-x -a \"(__tscap_{function})\"");
                    text += &format!("complete -c tscap -n {condition} {option} {list}\n");
                }
            }
        }
    }
    text
}
