//! `--reference` of `tscap clock` and `tscap capture`.

use std::path::PathBuf;
use std::time::Duration;

use super::units;
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

/// Whose exchanges are to be followed needs an interface.
pub(super) struct NoInterface;

/// The reference that was asked for, with `interface` for its packets.
pub(super) fn plan_of(
    choice: Option<ReferenceChoice>,
    interface: Option<&str>,
) -> Result<Option<ReferencePlan>, NoInterface> {
    let interface = interface.map(str::to_owned);
    Ok(match choice {
        None => None,
        Some(ReferenceChoice::Device(device)) => Some(ReferencePlan::Device(device)),
        Some(ReferenceChoice::Server { name, poll }) => Some(ReferencePlan::Ntp(NtpPlan::Ask {
            server: name,
            poll,
            interface,
        })),
        Some(ReferenceChoice::Passive) => {
            let interface = interface.ok_or(NoInterface)?;
            Some(ReferencePlan::Ntp(NtpPlan::Passive { interface }))
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
