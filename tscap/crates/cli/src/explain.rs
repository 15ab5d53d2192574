//! Answers about options: `tscap help OPTION`, and advice under what is refused.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};

use super::{Cli, Plan, foreign};

/// What `tscap help OPTION` and `tscap help COMMAND OPTION` are answered; `None` for another
/// command line. An option may be given with or without its dashes, where no command has its
/// name.
pub(super) fn asked(words: &[OsString]) -> Option<Result<Plan, clap::Error>> {
    let words: Option<Vec<_>> = words.iter().map(|word| word.to_str()).collect();
    let words = words?;
    let [_, "help", asked @ ..] = &words[..] else {
        return None;
    };
    let mut tscap = Cli::command();
    tscap.build();
    let (command, option) = match *asked {
        [option] if tscap.find_subcommand(option).is_none() && option != "help" => (None, option),
        [command, option] => (Some(tscap.find_subcommand(command)?), option),
        _ => return None,
    };
    let commands = match command {
        Some(command) => vec![command],
        None => tscap.get_subcommands().collect(),
    };
    let text = explained(&commands, option);
    let text = text.or_else(|| foreign::explained(option, command));
    Some(match text {
        Some(text) => Ok(Plan::Explain(text)),
        None => {
            let message = match command {
                Some(command) => format!("tscap {} has no option {option}", command.get_name()),
                None => format!("no command of tscap has an option {option}"),
            };
            Err(Cli::command().error(ErrorKind::UnknownArgument, message))
        }
    })
}

/// The help of an option, once for the commands that say the same of it.
fn explained(commands: &[&Command], option: &str) -> Option<String> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for command in commands {
        let mut visible = command.get_arguments().filter(|it| !it.is_hide_set());
        if let Some(arg) = visible.find(|it| is_called(it, option)) {
            let name = format!("tscap {}", command.get_name());
            by_text.entry(help_of(arg)).or_default().push(name);
        }
    }
    let parts = by_text
        .iter()
        .map(|(text, names)| format!("{}:\n{text}", names.join(", ")));
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

fn is_called(arg: &Arg, option: &str) -> bool {
    let long = option.strip_prefix("--").unwrap_or(option);
    let is_short = |short: char| {
        option
            .strip_prefix('-')
            .is_some_and(|it| it == short.to_string())
    };
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long() == Some(long) || aliases.contains(&long) || arg.get_short().is_some_and(is_short)
}

/// As the help of the command has it.
fn help_of(arg: &Arg) -> String {
    // What it excludes or requires is nothing to its help, and not there.
    let mut alone = Arg::new(arg.get_id().clone())
        .action(arg.get_action().clone())
        .value_parser(arg.get_value_parser().clone());
    if let Some(help) = arg.get_long_help().or(arg.get_help()) {
        alone = alone.long_help(help.clone());
    }
    if let Some(names) = arg.get_value_names() {
        alone = alone.value_names(names.to_vec());
    }
    if let Some(number) = arg.get_num_args() {
        alone = alone.num_args(number);
    }
    if !arg.is_hide_default_value_set() {
        alone = alone.default_values(arg.get_default_values().to_vec());
    }
    if let Some(long) = arg.get_long() {
        alone = alone.long(long.to_owned().leak() as &'static str);
    }
    if let Some(short) = arg.get_short() {
        alone = alone.short(short);
    }
    let command = Command::new("tscap")
        .disable_help_flag(true)
        .max_term_width(100);
    let mut command = command.help_template("{options}").arg(alone);
    format!("{}\n", command.render_long_help())
}

/// Options that are a part of another one now, or of another command, and how that is written.
const RENAMED: [(&str, &str); 3] = [
    (
        "tsc-path",
        "the way to the TSC is a part of the clock: --clock tsc:PATH, such as --clock tsc:perf",
    ),
    (
        "poll",
        "the time between two requests is a part of the reference: --reference ntp:HOST,poll=TIME",
    ),
    (
        "read",
        "what became of test frames in a capture is told by: tscap qos --flow gen FILE",
    ),
];

/// Adds to what is wrong with a command line where to find what is missing.
pub(super) fn with_advice(mut error: clap::Error) -> clap::Error {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some((_, now)) = RENAMED
            .iter()
            .find(|(old, _)| missing.iter().any(|it| it.strip_prefix("--") == Some(old)))
    {
        // One that is spelt alike is none that is meant.
        error.remove(ContextKind::SuggestedArg);
        let tip = StyledStr::from(*now);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    let is_interface = missing.iter().any(|it| it.starts_with("--interface"));
    if is_interface && error.kind() == ErrorKind::MissingRequiredArgument {
        let tip = StyledStr::from("tscap -D lists the interfaces; -i any takes all");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, clap::Error> {
        let words = ["tscap"].into_iter().chain(line.split_whitespace());
        Cli::plan(words.map(Into::into))
    }

    fn answer(line: &str) -> clap::Error {
        plan(line).unwrap_err()
    }

    fn explanation(line: &str) -> String {
        match plan(line) {
            Ok(Plan::Explain(text)) => text,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn an_option_is_explained_where_it_stands() {
        for (line, parts) in [
            ("help -b", &["tscap capture", "-b, --ring-buffer"][..]),
            ("help --snaplen", &["tscap capture", "tscap loss", "65428"]),
            ("help snaplen", &["tscap capture", "tscap loss"]),
            (
                "help --snapshot-length",
                &["tscap capture", "-s, --snaplen"],
            ),
            ("help loss -s", &["tscap loss", "--snaplen"]),
            ("help capture --clock", &["tscap capture", "ktime", "tai"]),
            ("help -Y", &["capture filters only"]),
            ("help -n", &["tscap capture takes -n", "changes nothing"]),
        ] {
            let text = explanation(line);
            for part in parts {
                assert!(text.contains(part), "{line}: {part}\n{text}");
            }
        }
        let one = explanation("help loss -s");
        assert!(!one.contains("tscap capture:"), "{one}");
    }

    #[test]
    fn an_option_that_is_a_part_of_another_names_it() {
        for (line, now) in [
            ("-i a -w f --clock tsc --tsc-path perf", "--clock tsc:perf"),
            ("-i a -w f --tsc-path=perf", "--clock tsc:perf"),
            ("stamp -i a --tsc-path perf", "--clock tsc:perf"),
            ("-i a --reference ntp:b --poll 8", "ntp:HOST,poll=TIME"),
            ("clock --reference ntp:b --poll=8", "ntp:HOST,poll=TIME"),
            ("gen --read f --json", "tscap qos --flow gen FILE"),
            ("gen -v --read=f", "tscap qos --flow gen FILE"),
        ] {
            let error = answer(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(now), "{line}: {error}");
        }
    }

    #[test]
    fn every_option_is_explained() {
        let mut tscap = Cli::command();
        tscap.build();
        for command in tscap.get_subcommands().filter(|it| it.get_name() != "help") {
            for arg in command.get_arguments().filter(|it| !it.is_hide_set()) {
                let Some(long) = arg.get_long() else { continue };
                let text = explained(&[command], &format!("--{long}")).unwrap_or_default();
                assert!(
                    text.contains(long),
                    "{} --{long}: {text}",
                    command.get_name()
                );
            }
        }
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for line in ["help --repair", "help repair", "help gen --repair"] {
            let error = answer(line);
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{line}");
            assert!(error.to_string().contains("repair"), "{error}");
        }
        // Of commands clap tells itself.
        for line in ["help", "help capture"] {
            assert_eq!(answer(line).kind(), ErrorKind::DisplayHelp, "{line}");
        }
    }

    #[test]
    fn a_missing_interface_names_the_list() {
        for line in [
            "capture -w out.pcapng",
            "-w out.pcapng",
            "gen --flat-out",
            "stamp",
        ] {
            let text = answer(line).to_string();
            assert!(
                text.contains("tscap -D lists the interfaces"),
                "{line}: {text}"
            );
        }
    }

    #[test]
    fn the_usage_of_the_whole_knows_its_short_form() {
        for line in ["nonsense", "help --repair", "capture -Y http"] {
            let text = answer(line).to_string();
            assert!(text.contains("Usage: tscap -i <NAME>"), "{line}: {text}");
        }
    }
}
