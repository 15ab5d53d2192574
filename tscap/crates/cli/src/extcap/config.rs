//! The options of a capture in the grammar of extcap(4), from the definitions that parse
//! them.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Args as _, Command};

use crate::CaptureArgs;

/// Those of `tscap capture` that Wireshark has no place of its own for, and that a user of
/// Wireshark may want; in the order of the dialogue.
const OFFERED: [&str; 8] = [
    "direction",
    "clock",
    "hook",
    "egress_point",
    "snapshot_length",
    "no_promiscuous_mode",
    "keep_raw",
    "verbose",
];

/// The sentences: an `arg` for each option, and a `value` for each of its values.
pub fn config() -> String {
    let command = CaptureArgs::augment_args(Command::new("capture"));
    let mut text = String::new();
    for (number, id) in OFFERED.into_iter().enumerate() {
        let option = command.get_arguments().find(|arg| arg.get_id() == id);
        sentences(
            &mut text,
            number,
            option.expect("an option of tscap capture"),
        );
    }
    text
}

fn sentences(text: &mut String, number: usize, option: &Arg) {
    let long = option.get_long().expect("each has a long name");
    let values = option.get_possible_values();
    let kind = match option.get_action() {
        ArgAction::SetTrue | ArgAction::Count => "boolflag",
        _ if values.is_empty() => "unsigned",
        _ => "selector",
    };
    let help = option.get_help().map(ToString::to_string);
    let _ = write!(
        text,
        "arg {{number={number}}}{{call=--{long}}}{{display={}}}{{tooltip={}}}{{type={kind}}}",
        label(long),
        plain(&help.unwrap_or_default()),
    );
    let default = option.get_default_values().first();
    let default = default.and_then(|value| value.to_str());
    if let ("unsigned", Some(default)) = (kind, default) {
        let _ = write!(text, "{{default={default}}}");
    }
    text.push('\n');
    if kind == "boolflag" {
        return;
    }
    for value in values {
        let name = value.get_name();
        let help = value.get_help().map(ToString::to_string);
        let display = help.map_or(name.to_owned(), |help| format!("{name}: {help}"));
        let is_default = default == Some(name);
        let _ = writeln!(
            text,
            "value {{arg={number}}}{{value={name}}}{{display={}}}{{default={is_default}}}",
            plain(&display)
        );
    }
}

/// What stands before the field: the option's name in words.
fn label(long: &str) -> String {
    let mut words = long.replace('-', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

/// Without what the grammar uses. It has no way to escape.
fn plain(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace('{', "(").replace('}', ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_those_of_capture() {
        let config = config();
        for line in [
            "arg {number=1}{call=--clock}{display=Clock}{tooltip=Clock to stamp frames \
             with}{type=selector}",
            "value {arg=1}{value=auto}{display=auto: The cheapest that works here: tsc by a \
             kfunc, where the TSC is invariant, else ktime}{default=true}",
            "value {arg=0}{value=out}{display=out: Sent ones}{default=false}",
            "arg {number=4}{call=--snaplen}{display=Snaplen}{tooltip=Most bytes \
             to capture of each frame; 0 for the default [default: 65428; without -w \
             64]}{type=unsigned}{default=0}",
        ] {
            assert!(config.lines().any(|it| it == line), "{line}\n{config}");
        }
        let flags = config
            .lines()
            .filter(|line| line.contains("{type=boolflag}"));
        assert_eq!(flags.count(), 3, "{config}");
        let sentences = config.lines().all(|line| {
            let is_known = line.starts_with("arg {number=") || line.starts_with("value {arg=");
            is_known && line.ends_with('}')
        });
        assert!(sentences, "{config}");
    }

    #[test]
    fn nothing_in_a_text_ends_a_sentence() {
        assert_eq!(plain("a {b}\n  c}{d"), "a (b) c)(d");
    }
}
