//! How the help of all commands is arranged: options under headings, which have the same names
//! in every command, and commands in groups.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use tscap_base::text::fold::fold;

/// What the help of an option stands under, by the option's long name, or else its short one.
const HEADINGS: &[(&str, &[&str])] = &[
    (
        "Interfaces",
        &[
            "interface",
            "netns",
            "container",
            "pod",
            "list-interfaces",
            "no-promiscuous-mode",
            "direction",
            "tap",
            "in",
            "out",
            "in-direction",
            "out-direction",
            "both",
            "reflect",
            "rtt",
            "mirror",
            "out-point",
            "peer-netns",
            "layers",
            "cgroup",
            "sender",
            "yes-send-here",
            "echo",
            "port",
            "address",
        ],
    ),
    ("Filter", &["f", "F", "filter-bytecode", "d", "dump-ebpf"]),
    (
        "Between two hosts",
        &[
            "to",
            "serve",
            "allow",
            "max-rate",
            "max-sessions",
            "stateless",
            "twamp-light",
            "ssid",
            "key-file",
            "poisson",
            "dscp",
            "align",
            "max-drift",
            "max-asymmetry",
            "with",
        ],
    ),
    ("Stop", &["count", "duration", "autostop", "timeout"]),
    (
        "Files",
        &[
            "write",
            "read",
            "file",
            "pcapng",
            "log",
            "from",
            "correction",
            "folder",
            "io",
            "file-rate",
        ],
    ),
    (
        "Several files",
        &[
            "file-size",
            "rotate-seconds",
            "file-count",
            "ring-buffer",
            "postrotate-command",
        ],
    ),
    (
        "Frames",
        &[
            "snaplen",
            "packet-meta",
            "offloads",
            "pattern",
            "size",
            "gap",
            "rate",
            "flat-out",
            "bulks",
            "line-rate",
            "flows",
            "vlan",
            "ipv6",
            "src",
            "dst",
            "dst-port",
            "src-mac",
            "dst-mac",
        ],
    ),
    (
        "Stamps",
        &[
            "clock",
            "reference",
            "hook",
            "egress-point",
            "hw-stamps",
            "send-times",
            "keep-raw",
            "force",
            "clock-log",
            "time-base",
            "leap-seconds",
            "audit-server",
            "interval",
            "at",
        ],
    ),
    (
        "Measurement",
        &[
            "quick",
            "paper",
            "irqs-off",
            "observer",
            "stress",
            "cycle",
            "match",
            "window",
            "max-packets",
            "load",
            "parallel",
            "flow",
            "inner",
            "max-flows",
            "rtp-clock",
            "voice-codec",
            "voice-delay",
            "sort",
            "top",
            "plan",
            "for",
            "peer",
        ],
    ),
    (
        "CPUs",
        &[
            "cpu",
            "receive-cpu",
            "rx-cpu",
            "converter-cpu",
            "priority",
            "writers",
            "ring-size",
        ],
    ),
    ("Privileges", &["relinquish-privileges", "group"]),
    ("Changes", &["fix", "yes"]),
    (
        "Output",
        &[
            "output",
            "json",
            "report",
            "metrics-file",
            "label",
            "quiet",
            "verbose",
        ],
    ),
];

/// Where one command means something else by an option.
const OTHERWISE: &[(&str, &str, &str)] = &[
    ("loss", "port", "Measurement"),
    ("report", "paper", "Output"),
    ("counters", "reference", "Measurement"),
];

/// The commands in groups, by their names.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "Capture and files",
        &["capture", "convert", "merge", "report"],
    ),
    ("The network", &["delay", "qos", "gen", "loss", "stamp"]),
    (
        "This machine",
        &["doctor", "clock", "compare", "counters", "restore"],
    ),
];

/// Options of a capture that `-h` tells of.
const MOST_USED: &[&str] = &[
    "interface",
    "list-interfaces",
    "direction",
    "count",
    "duration",
    "write",
    "snaplen",
    "clock",
    "quiet",
    "verbose",
];

/// What `-h` of a capture ends with.
const MORE: &str = "tscap capture --help has all options; tscap help OPTION explains one";

/// Columns of the list of commands.
const WIDTH: usize = 79;
/// Column in which the list of commands tells what each is for.
const ABOUT: usize = 12;

/// Arranges the help of the command that it is flattened into.
#[derive(Debug)]
pub(super) struct Headings;

impl FromArgMatches for Headings {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl Args for Headings {
    fn augment_args(tscap: Command) -> Command {
        let template = template(&tscap);
        tscap.mut_subcommands(arranged).help_template(template)
    }

    fn augment_args_for_update(tscap: Command) -> Command {
        Self::augment_args(tscap)
    }
}

/// A command with each option under its heading.
fn arranged(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| match heading(&name, &arg) {
        Some(heading) => arg.help_heading(heading),
        None => arg,
    });
    if name != "capture" {
        return command;
    }
    let is_most_used = |arg: &Arg| MOST_USED.iter().any(|name| is_called(arg, name));
    command
        .mut_args(|arg| {
            if arg.is_positional() || is_most_used(&arg) {
                return arg;
            }
            // A man page tells the long help of an option whose short one is hidden.
            let help = arg.get_long_help().or(arg.get_help()).cloned();
            arg.hide_short_help(true)
                .long_help(help.unwrap_or_default())
        })
        .after_help(MORE)
}

/// What an option of a command stands under.
fn heading(command: &str, arg: &Arg) -> Option<&'static str> {
    let mut otherwise = OTHERWISE.iter();
    let otherwise = otherwise.find(|(of, name, _)| *of == command && is_called(arg, name));
    let usual = || {
        let mut all = HEADINGS.iter();
        let found = all.find(|(_, names)| names.iter().any(|name| is_called(arg, name)));
        found.map(|(heading, _)| *heading)
    };
    otherwise.map(|(.., heading)| *heading).or_else(usual)
}

/// Whether it is the option of this long name, or of this short one without a long one.
fn is_called(arg: &Arg, name: &str) -> bool {
    match arg.get_long() {
        Some(long) => long == name,
        None => arg
            .get_short()
            .is_some_and(|short| short.to_string() == name),
    }
}

/// The help of tscap itself: its commands in groups before its options.
fn template(tscap: &Command) -> String {
    let header = tscap.get_styles().get_header();
    let literal = tscap.get_styles().get_literal();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let line = |name: &str, about: &str| {
        let about = fold(about, ABOUT, Some(WIDTH));
        let about = about.join(&format!("\n{}", " ".repeat(ABOUT)));
        format!(
            "\n  {literal}{name:<width$}{literal:#}{about}",
            width = ABOUT - 2
        )
    };
    for (title, names) in GROUPS {
        text += &format!("\n{header}{title}:{header:#}");
        for name in *names {
            let command = tscap.find_subcommand(name);
            let about = command.and_then(Command::get_about);
            text += &line(name, &about.map(ToString::to_string).unwrap_or_default());
        }
        text.push('\n');
    }
    text += "\ntscap help explains a command or an option: tscap help qos, tscap help --top\n";
    text += &format!("\n{header}Options:{header:#}");
    text += "\n{options}{after-help}";
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    fn visible(command: &Command) -> impl Iterator<Item = &Arg> {
        let options = command.get_arguments().filter(|it| !it.is_positional());
        options.filter(|it| !it.is_hide_set())
    }

    #[test]
    fn each_option_of_each_command_has_a_heading() {
        let tscap = Cli::command();
        let mut used = BTreeSet::new();
        for command in tscap.get_subcommands() {
            for arg in visible(command) {
                let heading = arg.get_help_heading();
                assert!(heading.is_some(), "{} {}", command.get_name(), arg.get_id());
                used.insert(heading.unwrap().to_owned());
            }
        }
        // No heading, and no name under one, is of an option that is no more.
        for (heading, names) in HEADINGS {
            assert!(used.contains(*heading), "{heading}");
            for name in *names {
                let is_there = tscap
                    .get_subcommands()
                    .any(|it| visible(it).any(|arg| is_called(arg, name)));
                assert!(is_there, "{name}");
            }
        }
        for (command, name, _) in OTHERWISE {
            let command = tscap.find_subcommand(command).expect("a command");
            assert!(visible(command).any(|arg| is_called(arg, name)), "{name}");
        }
    }

    /// One that two headings have would stand under the first.
    #[test]
    fn each_option_has_one_heading() {
        let mut seen = BTreeSet::new();
        for name in HEADINGS.iter().flat_map(|(_, names)| *names) {
            assert!(seen.insert(*name), "{name}");
        }
    }

    #[test]
    fn the_groups_hold_every_command() {
        let tscap = Cli::command();
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).collect();
        let commands: Vec<_> = tscap.get_subcommands().map(Command::get_name).collect();
        assert_eq!(
            grouped.iter().map(|it| **it).collect::<BTreeSet<_>>(),
            commands.iter().copied().collect()
        );
        assert_eq!(grouped.len(), commands.len());
        let help = Cli::command().render_long_help().to_string();
        for (title, names) in GROUPS {
            let start = help.find(&format!("\n{title}:\n")).expect(title);
            for name in *names {
                let line = format!("\n  {name} ");
                assert!(help[start..].contains(&line), "{name}: {help}");
            }
        }
        assert!(
            help.contains("\nOptions:\n") && help.contains("\nExamples:\n"),
            "{help}"
        );
    }

    #[test]
    fn the_most_used_options_of_a_capture_fit_a_screen() {
        let tscap = Cli::command().term_width(80);
        let mut capture = tscap.find_subcommand("capture").unwrap().clone();
        let short = capture.clone().term_width(80);
        let short = short.bin_name("tscap capture").render_help().to_string();
        assert!(
            short.lines().count() <= 40,
            "{}\n{short}",
            short.lines().count()
        );
        assert!(short.lines().all(|it| it.chars().count() <= 80), "{short}");
        for name in MOST_USED {
            assert!(short.contains(&format!("--{name}")), "{name}: {short}");
        }
        assert!(short.contains("tscap capture --help"), "{short}");
        let long = capture.render_long_help().to_string();
        assert!(
            long.contains("Don't put the interface into promiscuous mode"),
            "{long}"
        );
        for arg in visible(&capture) {
            let name = match arg.get_long() {
                Some(long) => format!("--{long}"),
                None => format!("  -{}", arg.get_short().expect("a name")),
            };
            assert!(long.contains(&name), "{name}: {long}");
        }
    }
}
