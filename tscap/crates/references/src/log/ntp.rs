//! Exchanges with NTP servers in a log.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::ntp::NtpPoint;

/// Exchanges kept between two entries, 10 s at most: more than one client makes.
const MOST_POINTS: usize = 1_000;

/// Exchanges with one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NtpPoints {
    /// The server.
    pub server: SocketAddr,
    /// In the order of time.
    pub points: Vec<NtpPoint>,
}

/// Those since the entry before.
#[derive(Clone, Debug, Default)]
pub(super) struct NtpRecorder {
    servers: Vec<NtpPoints>,
    points: usize,
}

impl NtpRecorder {
    /// Takes in an exchange.
    pub fn take(&mut self, server: SocketAddr, point: NtpPoint) {
        if self.points == MOST_POINTS {
            return;
        }
        self.points += 1;
        match self.servers.iter_mut().find(|it| it.server == server) {
            Some(known) => known.points.push(point),
            None => self.servers.push(NtpPoints {
                server,
                points: vec![point],
            }),
        }
    }

    /// What came since the last call.
    pub fn take_all(&mut self) -> Vec<NtpPoints> {
        self.points = 0;
        std::mem::take(&mut self.servers)
    }
}
