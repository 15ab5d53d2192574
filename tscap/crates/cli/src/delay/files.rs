//! `tscap delay --file A --file B`.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use super::peers::AlignArgs;
use tscap_delay::schema::Match;
use tscap_file::accounting::Direction;
use tscap_two_hosts::files::{FilePlace, FilesPlan};

/// Which frames of the interfaces of a file.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct DirectionArgs {
    /// With --file: where packets enter, what the interface received (in) or sent (out) [default:
    /// in; of two files out]
    #[arg(
        long,
        value_enum,
        value_name = "in|out",
        requires = "file",
        requires = "entry"
    )]
    in_direction: Option<DirectionChoice>,

    /// The same where they leave [default: out; of two files in]
    #[arg(
        long,
        value_enum,
        value_name = "in|out",
        requires = "file",
        requires = "exit"
    )]
    out_direction: Option<DirectionChoice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DirectionChoice {
    In,
    Out,
}

impl DirectionChoice {
    fn direction(self) -> Direction {
        match self {
            Self::In => Direction::In,
            Self::Out => Direction::Out,
        }
    }
}

/// The captures of two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFiles {
    /// That of each; one file twice where it has both.
    pub paths: [PathBuf; 2],
    /// What is to be measured in them.
    pub plan: FilesPlan,
    /// It is asked for; otherwise it is measured so where the file turns out to be of two hosts.
    pub is_asked: bool,
}

/// What the command line has of them.
pub(super) struct Given<'a> {
    pub files: &'a [PathBuf],
    /// --in and --out.
    pub places: &'a [Option<String>; 2],
    pub is_both: bool,
    pub directions: DirectionArgs,
    pub align: AlignArgs,
    pub window: Duration,
    pub capacity: usize,
}

impl Given<'_> {
    /// What to measure in the captures of two hosts, if these may be such. `has_place` if it is said
    /// otherwise where to measure.
    pub fn hosts(
        self,
        has_place: bool,
        matched_by: Option<Match>,
    ) -> Result<Option<HostFiles>, (ErrorKind, &'static str)> {
        let has_places = self.places[0].is_some();
        let conflict = |what| Err((ErrorKind::ArgumentConflict, what));
        let DirectionArgs {
            in_direction,
            out_direction,
        } = self.directions;
        let is_asked = self.align.is_given() || in_direction.is_some() || out_direction.is_some();
        let (paths, defaults) = match self.files {
            [] | [_] if !has_place && !has_places => {
                return Err((
                    ErrorKind::MissingRequiredArgument,
                    "give --in IF --out IF, --reflect IF, --rtt IF, --to HOST, --serve IF, or the captures of \
                     two hosts: --file A --file B",
                ));
            }
            [] if has_places && self.align.is_given() => {
                return conflict(
                    "--align, --max-drift and --max-asymmetry are for --to and --file",
                );
            }
            [] if self.is_both && !has_places => {
                return conflict("--both needs --in and --out, or two files");
            }
            [] => return Ok(None),
            [_] if self.is_both => {
                return conflict("--both is of two files, or of interfaces that work now");
            }
            [_] if !has_places => return Ok(None),
            [one] => (
                [one.clone(), one.clone()],
                [DirectionChoice::In, DirectionChoice::Out],
            ),
            [_, _] if has_place => {
                return conflict("two files are of two hosts: name places by --in and --out");
            }
            [one, other] => (
                [one.clone(), other.clone()],
                [DirectionChoice::Out, DirectionChoice::In],
            ),
            _ => return conflict("--file is given once, or twice for two hosts"),
        };
        if matched_by == Some(Match::Reply) && (is_asked || self.files.len() > 1) {
            return conflict("--match reply is of one host: its own request and reply");
        }
        let directions = [in_direction, out_direction];
        let mut of = [0, 1].map(|index| FilePlace {
            file: paths[index].display().to_string(),
            interface: self.places[index].clone(),
            direction: directions[index].unwrap_or(defaults[index]).direction(),
        });
        if paths[0] == paths[1] {
            // One file has two places.
            for place in &mut of {
                place.file = format!(
                    "{} ({})",
                    place.file,
                    place.interface.as_deref().unwrap_or("")
                );
            }
        }
        Ok(Some(HostFiles {
            paths,
            plan: FilesPlan {
                places: of,
                is_both: self.is_both,
                matched_by: matched_by.unwrap_or(Match::Route),
                window: self.window,
                capacity: self.capacity,
                align: self.align.by,
                max_drift_ppb: self.align.max_drift_ppb,
                max_asymmetry_ns: self.align.max_asymmetry_ns,
            },
            is_asked: is_asked || self.files.len() > 1,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cli, DelayPlan, Plan};
    use tscap_two_hosts::AlignBy;

    fn plan(line: &str) -> Result<DelayPlan, clap::Error> {
        let words = format!("tscap delay {line}");
        match Cli::plan(words.split(' ').map(Into::into))? {
            Plan::Delay(plan) => Ok(*plan),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn two_files_are_of_two_hosts() {
        let hosts = plan("--file a --file b --both").unwrap().hosts.unwrap();
        assert!(hosts.is_asked && hosts.plan.is_both);
        let directions = hosts.plan.places.each_ref().map(|it| it.direction);
        assert_eq!(directions, [Direction::Out, Direction::In]);
        let line = "--file a --file b --in x --out y --in-direction in --align utc --max-drift 50";
        let hosts = plan(line).unwrap().hosts.unwrap();
        assert_eq!(hosts.plan.places[0].direction, Direction::In);
        assert_eq!(hosts.plan.places[1].interface.as_deref(), Some("y"));
        assert_eq!(
            (hosts.plan.align, hosts.plan.max_drift_ppb),
            (Some(AlignBy::Utc), Some(50_000))
        );
        // It may be merged of two hosts' captures.
        let hosts = plan("--file a --in x --out y").unwrap().hosts.unwrap();
        assert!(!hosts.is_asked);
        let directions = hosts.plan.places.each_ref().map(|it| it.direction);
        assert_eq!(directions, [Direction::In, Direction::Out]);
        let hosts = plan("--file a --in x --out y --align both").unwrap().hosts;
        assert!(hosts.unwrap().is_asked);
        assert_eq!(plan("--file a --rtt x").unwrap().hosts, None);
        assert_eq!(plan("--in x --out y").unwrap().hosts, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            "--file a",
            "--file a --file b --file c",
            "--file a --file b --rtt x",
            "--file a --file b --in x",
            "--file a --file b --match reply",
            "--file a --file b --to x",
            "--in x --out y --align both",
            "--in x --out y --in-direction out",
            "--rtt x --align both",
            "--file a --file b --max-drift 5000",
            "--file a --file b udp",
        ] {
            assert!(plan(wrong).is_err(), "{wrong}");
        }
    }
}
