//! Which test packets get send times.

use tscap_common::send_times::{FROM, MOST_PORTS, TO, entry};

/// Which end of a test the packets of a port come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A session-reflector of this host, at this port: packets from it, whose time is T3.
    Reflector,
    /// A session-sender of this host, whose reflector is at this port: packets to it, whose time
    /// is T1.
    Sender,
    /// Either.
    Either,
}

/// UDP ports whose unauthenticated test packets get send times; none unless added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendTimes(Vec<(u16, End)>);

/// There are more ports than the program has room for.
#[derive(Debug, thiserror::Error)]
#[error("at most {MOST_PORTS} ports get send times")]
pub struct TooManyPorts;

impl SendTimes {
    /// Of these ports.
    ///
    /// # Errors
    /// If there are more than 16.
    pub fn of(ports: impl IntoIterator<Item = (u16, End)>) -> Result<Self, TooManyPorts> {
        let ports: Vec<_> = ports.into_iter().collect();
        if ports.len() > MOST_PORTS {
            return Err(TooManyPorts);
        }
        Ok(Self(ports))
    }

    /// The ports.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|(port, _)| *port)
    }

    /// As the program has them.
    pub(super) fn entries(&self) -> Vec<u32> {
        let ends = |end| match end {
            End::Reflector => FROM,
            End::Sender => TO,
            End::Either => FROM | TO,
        };
        let ports = self.0.iter();
        ports.map(|(port, end)| entry(*port, ends(*end))).collect()
    }
}

#[cfg(test)]
mod tests {
    use tscap_common::send_times::has;

    use super::*;

    #[test]
    fn each_end_has_its_packets() {
        let ports = [
            (862, End::Reflector),
            (863, End::Sender),
            (864, End::Either),
        ];
        let entries = SendTimes::of(ports).unwrap().entries();
        let are = |source, destination| entries.iter().any(|it| has(*it, source, destination));
        for (port, from, to) in [
            (862, true, false),
            (863, false, true),
            (864, true, true),
            (865, false, false),
        ] {
            assert_eq!((are(port, 9), are(9, port)), (from, to), "{port}");
        }
    }

    #[test]
    fn there_is_room_for_sixteen() {
        let of = |count| SendTimes::of((0..count).map(|port| (port, End::Either)));
        assert_eq!(of(16).unwrap().entries().len(), MOST_PORTS);
        assert!(of(17).is_err());
    }
}
