//! `--reference`.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};

use super::{Cli, units};
use tscap_capture::{BY_TSC, ClockChoice};
use tscap_references::ntp::{self, LONGEST_POLL};
use tscap_sources::ntp::{NtpPlan, ServerName};
use tscap_sources::reference::ReferencePlan;

/// A reference as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReferenceChoice {
    Device(PathBuf),
    Server { name: ServerName, poll: Duration },
    Passive,
}

/// A device, `ntp:HOST`, `ntp:HOST:PORT`, these with `,poll=TIME`, or `ntp:passive`.
pub(super) fn reference(text: &str) -> Result<ReferenceChoice, String> {
    let (place, asked) = match text.split_once(',') {
        None => (text, None),
        Some((place, option)) => (place, Some(option)),
    };
    let server = place.strip_prefix("ntp:");
    let Some(server) = server.filter(|server| *server != "passive") else {
        return match (server, asked) {
            (_, Some(option)) if option.starts_with("poll=") => {
                Err("poll goes with ntp:HOST: nothing else is asked".into())
            }
            (Some(_), Some(_)) => Err("nothing may follow ntp:passive".into()),
            (Some(_), None) => Ok(ReferenceChoice::Passive),
            (None, _) => Ok(ReferenceChoice::Device(text.into())),
        };
    };
    let poll = asked.map_or(Ok(POLL), |option| match option.strip_prefix("poll=") {
        Some(time) => poll(time),
        None => Err("only poll=TIME may follow the server: ntp:HOST,poll=8s".into()),
    })?;
    let (host, port) = match server.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or_default())),
        // An address of IPv6 has colons of its own.
        None => match server.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            _ => (server, None),
        },
    };
    let port = port.map_or(Ok(ntp::PORT), |port| match port.parse() {
        Ok(port @ 1..) => Ok(port),
        _ => Err("a port is a number from 1 to 65535"),
    })?;
    if host.is_empty() {
        return Err("name the server: ntp:HOST, ntp:HOST:PORT or ntp:[ADDRESS]:PORT".into());
    }
    let host = host.to_owned();
    let name = ServerName { host, port };
    Ok(ReferenceChoice::Server { name, poll })
}

/// Between two requests, by default.
const POLL: Duration = Duration::from_secs(16);

fn poll(text: &str) -> Result<Duration, String> {
    let poll = units::duration(text)?;
    match poll {
        _ if poll < SHORTEST => Err("the shortest is 100ms".into()),
        _ if poll > LONGEST_POLL => Err(format!("the longest is {} s", LONGEST_POLL.as_secs())),
        _ => Ok(poll),
    }
}

/// The shortest time between two requests.
const SHORTEST: Duration = Duration::from_millis(100);

/// `--reference` of the commands whose stamps can be by one.
#[derive(Debug, Default, Args)]
pub(super) struct ReferenceArgs {
    /// Take the times from an NTP server (ntp:HOST), from the servers that the host's daemon
    /// asks through the interface (ntp:passive), or from a PTP hardware clock (/dev/ptp0), and not
    /// from the host's clock; more than once for several
    ///
    /// The host's clock is neither used nor changed, and whoever sets it does not move the
    /// times. Stamps are those of the TSC. It begins once the reference has told its time; a
    /// reference that falls silent is carried on with a growing bound. A server is asked every
    /// 16 s, or as ntp:HOST,poll=8s says; every 8 s at most if it is not on this machine.
    ///
    /// Several references are compared: the bound holds as long as fewer than half of those that
    /// answer are wrong, and one that contradicts the others is named. If one falls silent, another
    /// takes over. tscap gen stamps by the host's clocks all the same, and tells how far they are
    /// off.
    #[arg(long, value_name = "ntp:HOST[,poll=TIME]|ntp:passive|DEVICE", value_parser = reference)]
    reference: Vec<ReferenceChoice>,
}

impl ReferenceArgs {
    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        !self.reference.is_empty()
    }

    /// The clock of the stamps: that of times by a reference is the TSC.
    ///
    /// # Errors
    /// If another one was asked for.
    pub fn clock(&self, asked: ClockChoice) -> Result<ClockChoice, clap::Error> {
        match asked {
            _ if self.reference.is_empty() => Ok(asked),
            ClockChoice::Auto | ClockChoice::Tsc => Ok(ClockChoice::Tsc),
            _ => Err(conflict(BY_TSC)),
        }
    }

    /// The references, none for the host's clock. A passive one goes by the exchanges at
    /// `interface`, where there is one of this process's own network namespace.
    ///
    /// # Errors
    /// If a passive one has none.
    pub fn plans(self, interface: Option<&str>) -> Result<Vec<ReferencePlan>, clap::Error> {
        let passive = interface.filter(|it| is_name(it));
        let plans = self.reference.into_iter().map(|choice| match choice {
            ReferenceChoice::Passive => plan_of(ReferenceChoice::Passive, passive),
            choice => plan_of(choice, None),
        });
        let plans: Result<_, NoInterface> = plans.collect();
        plans.map_err(|NoInterface| {
            conflict(
                "--reference ntp:passive takes one interface, by name and in tscap's own network \
                 namespace: that through which the host's daemon asks its servers",
            )
        })
    }
}

fn conflict(what: &str) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, what)
}

/// Whether it is the name of one interface.
fn is_name(interface: &str) -> bool {
    !interface.is_empty() && interface != "any" && !interface.contains(['*', '?', '['])
}

/// Whose exchanges are to be followed needs an interface.
pub(super) struct NoInterface;

/// The reference that was asked for, with `interface` for its packets.
pub(super) fn plan_of(
    choice: ReferenceChoice,
    interface: Option<&str>,
) -> Result<ReferencePlan, NoInterface> {
    let interface = interface.map(str::to_owned);
    Ok(match choice {
        ReferenceChoice::Device(device) => ReferencePlan::Device(device),
        ReferenceChoice::Server { name, poll } => ReferencePlan::Ntp(NtpPlan::Ask {
            server: name,
            poll,
            interface,
        }),
        ReferenceChoice::Passive => {
            let interface = interface.ok_or(NoInterface)?;
            ReferencePlan::Ntp(NtpPlan::Passive { interface })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_as_people_write_them() {
        let server = |host: &str, port| {
            let host = host.to_owned();
            let name = ServerName { host, port };
            Ok(ReferenceChoice::Server { name, poll: POLL })
        };
        for (text, host, port) in [
            ("ntp:ntp.example", "ntp.example", 123),
            ("ntp:10.9.0.2:1123", "10.9.0.2", 1_123),
            ("ntp:2001:db8::1", "2001:db8::1", 123),
            ("ntp:[2001:db8::1]", "2001:db8::1", 123),
            ("ntp:[2001:db8::1]:1123", "2001:db8::1", 1_123),
        ] {
            assert_eq!(reference(text), server(host, port), "{text}");
        }
        let often = reference("ntp:[2001:db8::1]:1123,poll=1m").unwrap();
        let ReferenceChoice::Server { name, poll } = often else {
            panic!("{often:?}");
        };
        assert_eq!((name.port, poll), (1_123, Duration::from_secs(60)));
        assert_eq!(reference("ntp:passive"), Ok(ReferenceChoice::Passive));
        let device = ReferenceChoice::Device("/dev/ptp0".into());
        assert_eq!(reference("/dev/ptp0"), Ok(device));
        for bad in [
            "ntp:",
            "ntp::123",
            "ntp:host:0",
            "ntp:host:x",
            "ntp:[]:1",
            "ntp:[::1]x",
            "ntp:a,",
            "ntp:a,poll=",
            "ntp:a,poll=50ms",
            "ntp:a,8s",
            "ntp:passive,x",
            "/dev/ptp0,poll=8s",
        ] {
            assert!(reference(bad).is_err(), "{bad}");
        }
    }
}
