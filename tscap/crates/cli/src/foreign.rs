//! Options of tcpdump, tshark and dumpcap that `tscap capture` does not have, and of
//! mergecap that `tscap merge` does not have: taken where they change nothing, answered in
//! a sentence elsewhere. Clap knows them from the tables here, hidden from the help.

use std::marker::PhantomData;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches};

/// Group of the options that end in an answer: none of the required ones is asked for
/// then.
pub(super) const ANSWERED: &str = "answered";

const NO_PRINTING: &str = "tscap does not print packets: tshark -r FILE shows them, and \
                           tscap capture ... -w - | tshark -r - while they come";
const NO_READING: &str = "tscap capture reads no files: tshark -r FILE shows one (tscap qos \
                          and tscap convert read one)";
const DISPLAY_FILTER: &str = "tscap has capture filters only, such as tcp port 80: tshark -r \
                              FILE -Y FILTER shows a part of a file";
const DISSECTION: &str = "tscap does not dissect packets: tshark -r FILE does, with this option";
const MESSAGES: &str = "tscap has no levels of messages: -q and -v say how much is told, and \
                        messages go to standard error";
const ETHERNET: &str = "tscap takes frames as the interface has them: Ethernet (EN10MB), or IP packets \
                        (RAW) of tunnels; tscap -D says which";
const STAMPS: &str = "tscap has its own clocks: see --clock, and tscap doctor for those that \
                      work here";

/// What becomes of an option.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// It asks for nothing, or for what tscap does anyway.
    Taken,
    /// The same with one of these values; with any other, the sentence.
    TakenWith(&'static [&'static str], &'static str),
    /// The sentence.
    Answer(&'static str),
}
use Reply::{Answer, Taken, TakenWith};

/// The options of other programs that a command knows.
pub(super) trait Known {
    /// Each by its names, as clap shows them.
    const OPTIONS: &'static [(&'static str, Reply)];
}

/// Of `tscap capture`.
#[derive(Debug)]
pub(super) enum OfCapture {}

/// Of `tscap merge`.
#[derive(Debug)]
pub(super) enum OfMerge {}

impl Known for OfCapture {
    const OPTIONS: &'static [(&'static str, Reply)] = OPTIONS;
}

impl Known for OfMerge {
    const OPTIONS: &'static [(&'static str, Reply)] = &[
        (
            "-a",
            Answer("tscap merges by time only: mergecap -a puts files one behind the other"),
        ),
        (
            "-F",
            TakenWith(
                &["pcapng"],
                "tscap writes pcapng: editcap -F makes other formats of it",
            ),
        ),
        (
            "-I",
            Answer(
                "tscap joins the interfaces of the files of one capture, and keeps those of others apart",
            ),
        ),
        (
            "-s",
            Answer("tscap keeps frames whole: editcap -s N cuts them"),
        ),
        (
            "-v, --version",
            Answer("tscap --version prints the version"),
        ),
        ("-V", Taken),
    ];
}

/// An option of tscap capture's by its names, as clap shows them.
#[rustfmt::skip]
const OPTIONS: &[(&str, Reply)] = &[
    // tcpdump's, and tshark's and dumpcap's where they mean the same.
    ("-A", Answer(NO_PRINTING)),
    ("-B, --buffer-size", Answer("a buffer is KiB for tcpdump and MiB for dumpcap: --ring-size takes the ring of each CPU, such as 64M")),
    ("-e", Taken),
    ("-E", Answer(NO_PRINTING)),
    ("-g", Answer("tscap leaves the file to its owner: --group GROUP lets a group read it")),
    ("-H", Taken),
    ("-I, --monitor-mode", Answer(ETHERNET)),
    ("-j, --time-stamp-type", Answer(STAMPS)),
    ("-J, --list-time-stamp-types", Answer(STAMPS)),
    ("-K, --dont-verify-checksums", Taken),
    ("-l", Taken),
    ("-L, --list-data-link-types", Answer(ETHERNET)),
    ("-m", Answer(NO_PRINTING)),
    ("-M", Answer(NO_PRINTING)),
    ("-n", Taken),
    ("-N", Taken),
    ("-O, --no-optimize", Taken),
    ("-P", Answer("tscap does not print packets, and writes pcapng: editcap -F nsecpcap FILE OUT.pcap makes pcap of it")),
    ("-r, --read-file", Answer(NO_READING)),
    ("-S, --absolute-tcp-sequence-numbers", Taken),
    ("-t", Taken),
    ("-T", Answer(NO_PRINTING)),
    ("-u", Taken),
    ("-U, --packet-buffered", Taken),
    ("-V", Answer(NO_READING)),
    ("-x", Answer(NO_PRINTING)),
    ("-X", Answer(NO_PRINTING)),
    ("-y, --linktype", TakenWith(&["EN10MB"], ETHERNET)),
    ("-#, --number", Taken),
    ("--immediate-mode", Taken),
    ("--lengths", Taken),
    ("--micro", Answer("tscap writes times in nanoseconds")),
    ("--nano", Taken),
    ("--print", Answer(NO_PRINTING)),
    ("--time-stamp-precision", TakenWith(&["nano"], "tscap writes times in nanoseconds")),
    // tshark's and dumpcap's.
    ("-2", Answer(NO_PRINTING)),
    ("-k", Answer("tscap does not set channels: iw dev INTERFACE set channel does")),
    ("-o", Answer(NO_PRINTING)),
    ("-R, --read-filter", Answer(DISPLAY_FILTER)),
    ("-Y, --display-filter", Answer(DISPLAY_FILTER)),
    ("--capture-comment", Answer("tscap writes no comments: editcap --capture-comment TEXT FILE OUT adds one")),
    ("--color", Answer(NO_PRINTING)),
    ("--disable-heuristic", Answer(DISSECTION)),
    ("--disable-protocol", Answer(DISSECTION)),
    ("--elastic-mapping-filter", Answer(DISSECTION)),
    ("--enable-heuristic", Answer(DISSECTION)),
    ("--enable-protocol", Answer(DISSECTION)),
    ("--export-objects", Answer(DISSECTION)),
    ("--export-tls-session-keys", Answer(DISSECTION)),
    ("--hexdump", Answer(NO_PRINTING)),
    ("--ifdescr", Answer("tscap captures on interfaces, not from pipes")),
    ("--ifname", Answer("tscap captures on interfaces, not from pipes")),
    ("--log-debug", Answer(MESSAGES)),
    ("--log-domains", Answer(MESSAGES)),
    ("--log-fatal", Answer(MESSAGES)),
    ("--log-file", Answer(MESSAGES)),
    ("--log-level", Answer(MESSAGES)),
    ("--log-noisy", Answer(MESSAGES)),
    ("--no-duplicate-keys", Answer(NO_PRINTING)),
    ("--temp-dir", Answer("tscap makes no temporary files: give -w")),
];

/// What the foreign options of a command line ask for that tscap does not do.
#[derive(Debug)]
pub(super) struct ForeignArgs<K> {
    answer: Option<String>,
    of: PhantomData<K>,
}

impl<K> ForeignArgs<K> {
    /// The first answer, as a usage error.
    pub fn check(&self) -> Result<(), clap::Error> {
        self.answer
            .as_ref()
            .map_or(Ok(()), |answer| Err(error(answer)))
    }
}

impl<K: Known> FromArgMatches for ForeignArgs<K> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut answers = K::OPTIONS.iter().filter_map(|(names, reply)| match reply {
            Taken | TakenWith(..) => None,
            Answer(sentence) => {
                (matches.contains_id(names)).then(|| format!("{names}: {sentence}"))
            }
        });
        Ok(Self {
            answer: answers.next(),
            of: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<K: Known> Args for ForeignArgs<K> {
    fn augment_args(command: Command) -> Command {
        let answered = K::OPTIONS.iter().filter(|it| matches!(it.1, Answer(_)));
        let answered = answered.map(|(names, _)| *names);
        let group = ArgGroup::new(ANSWERED).args(answered).multiple(true);
        let options = K::OPTIONS
            .iter()
            .map(|(names, reply)| option(names, *reply));
        command.args(options).group(group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// What becomes of an option of another program, for its help: of those of `command`, or of
/// all commands.
pub(super) fn explained(option: &str, command: Option<&Command>) -> Option<String> {
    let all = [("capture", OfCapture::OPTIONS), ("merge", OfMerge::OPTIONS)];
    let mut parts = Vec::new();
    for (name, options) in all {
        if command.is_some_and(|it| it.get_name() != name) {
            continue;
        }
        for (names, reply) in options
            .iter()
            .filter(|it| it.0.split(", ").any(|it| it == option))
        {
            parts.push(match reply {
                Taken => format!(
                    "tscap {name} takes {names} of other programs: it changes nothing here\n"
                ),
                TakenWith(_, sentence) | Answer(sentence) => {
                    format!("tscap {name} does not have {names}: {sentence}\n")
                }
            });
        }
    }
    (!parts.is_empty()).then(|| parts.concat())
}

fn option(names: &'static str, reply: Reply) -> Arg {
    let arg = names
        .split(", ")
        .fold(Arg::new(names), |arg, name| match name.strip_prefix("--") {
            Some(long) => arg.long(long),
            None => arg.short(name.chars().nth(1)),
        });
    let arg = arg.hide(true);
    match reply {
        Taken => arg.action(ArgAction::Count),
        // A wrong value is found before what is missing.
        TakenWith(values, sentence) => arg
            .action(ArgAction::Append)
            .value_name("VALUE")
            .value_parser(move |value: &str| {
                if values.contains(&value) {
                    Ok(value.to_owned())
                } else {
                    Err(sentence)
                }
            }),
        // Whether it has a value is nothing to the answer.
        Answer(_) => arg.action(ArgAction::Append).num_args(0..=1),
    }
}

fn error(message: impl std::fmt::Display) -> clap::Error {
    use clap::CommandFactory as _;
    super::Cli::command().error(ErrorKind::UnknownArgument, message)
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Plan};
    use super::*;

    fn parse(line: &str) -> Result<Plan, String> {
        let words = ["tscap"].into_iter().chain(line.split_whitespace());
        let plan = Cli::plan(words.map(Into::into));
        plan.map_err(|error| error.to_string())
    }

    #[test]
    fn every_option_of_the_table_is_taken_or_answered() {
        let plain = parse("capture -i a -w f").unwrap();
        for (names, reply) in OPTIONS {
            for name in names.split(", ") {
                let line = |value: &str| format!("capture {name} {value} -i a -w f");
                let alone = format!("capture {name}");
                match reply {
                    Taken => assert_eq!(parse(&line("")).unwrap(), plain, "{name}"),
                    Answer(sentence) => {
                        assert!(parse(&alone).unwrap_err().contains(sentence), "{name}");
                    }
                    TakenWith(values, sentence) => {
                        assert_eq!(parse(&line(values[0])).unwrap(), plain, "{name}");
                        let error = parse(&line("other")).unwrap_err();
                        assert!(error.contains(sentence), "{name}: {error}");
                        assert!(error.contains("other"), "{name}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn answers_come_before_what_is_missing() {
        for (line, part) in [
            ("capture -r in.pcap", "tshark -r FILE"),
            ("-nnr in.pcap port 80", "tshark -r FILE"),
            ("-i a -Y http", "capture filters only"),
            ("-XX -i a", "tscap capture ... -w - | tshark -r -"),
            ("-i a -y LINUX_SLL2", "as the interface has them"),
            ("-i a --export-objects http,.", "tshark -r FILE does"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
            assert!(!error.contains("required"), "{line}: {error}");
        }
    }

    #[test]
    fn a_command_line_of_tcpdump_is_one_of_capture() {
        let plain = parse("capture -v -i a -w f -c 5").unwrap();
        for line in [
            "-nnvvveltttti a -w f -c 5",
            "-i a -n -e -l -U -vvv -Q inout --immediate-mode -tttt -c 5 -w f",
            "-v -i a -a packets:5 -w f",
        ] {
            assert_eq!(parse(line).unwrap(), plain, "{line}");
        }
        assert_eq!(parse("-D").unwrap(), Plan::ListInterfaces(Vec::new()));
        for line in ["--help", "-h", "--version", "-V"] {
            let shown = parse(line).unwrap_err();
            assert!(!shown.contains("--snaplen BYTES"), "{line}: {shown}");
        }
    }
}
