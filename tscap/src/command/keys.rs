//! Keys that are pressed on the terminal.

use std::io::{self, IsTerminal as _, Read as _};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use tscap_host::caps;

/// Each key as it is pressed, without an Enter; the terminal is as it was on drop.
#[derive(Debug)]
pub(super) struct Keys {
    before: Termios,
    pressed: UnboundedReceiver<u8>,
}

impl Keys {
    /// Those on standard input; `None` if that is no terminal, or another process group's.
    pub fn new() -> Option<Self> {
        let stdin = io::stdin();
        if !stdin.is_terminal() || tcgetpgrp(&stdin).ok()? != getpgrp() {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut now = before.clone();
        now.local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO);
        tcsetattr(&stdin, SetArg::TCSANOW, &now).ok()?;
        let (press, pressed) = unbounded_channel();
        let keys = Self { before, pressed };
        let thread = std::thread::Builder::new().name("tscap-keys".into());
        // It waits for keys until the process ends.
        let started = thread.spawn(move || {
            let _ = caps::keep_only(&[]);
            let mut key = [0];
            while matches!(stdin.lock().read(&mut key), Ok(1)) && press.send(key[0]).is_ok() {}
        });
        started.is_ok().then_some(keys)
    }

    /// Waits until `key` is pressed. Safe to cancel.
    pub async fn wait_for(&mut self, key: u8) {
        while let Some(pressed) = self.pressed.recv().await {
            if pressed == key {
                return;
            }
        }
        std::future::pending().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}
