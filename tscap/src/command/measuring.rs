//! A measurement in a thread of its own, with a progress bar and an end by Ctrl-C.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::console::Console;
use super::signals::Signals;
use super::{Failure, Hint};
use crate::load::Stop;

/// How long it will take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    /// Steps.
    pub of: u32,
    /// About, s.
    pub seconds: f64,
}

/// Does `work` in a thread called `name`; it says after each step how many are over,
/// by `progress` to machines. `None` if a second signal ended it at once; `left_out` is
/// what the first one costs.
pub(super) async fn measure<T: Send + 'static, P: Serialize>(
    name: &str,
    amount: Amount,
    left_out: &str,
    signals: &mut Signals,
    console: &mut Console,
    progress: impl Fn(u32) -> P,
    work: impl FnOnce(Arc<Stop>, UnboundedSender<u32>) -> T + Send + 'static,
) -> Result<Option<T>, Failure> {
    const VERSION: u32 = 1;
    let (done, mut steps) = unbounded_channel();
    let stop = Arc::new(Stop::default());
    let start = Instant::now();
    let measuring = std::thread::Builder::new().name(name.into());
    let measuring = measuring
        .spawn({
            let stop = Arc::clone(&stop);
            move || work(stop, done)
        })
        .trying("cannot start the measuring thread")?;
    loop {
        tokio::select! {
            step = steps.recv() => match step {
                Some(step) => {
                    let share = f64::from(step) / f64::from(amount.of.max(1));
                    let spent = start.elapsed().as_secs_f64();
                    let left = time_left(share, spent, amount.seconds);
                    console.progress(VERSION, progress(step), || bar(share, left));
                }
                None => break,
            },
            () = signals.next() => {
                if !stop.ask() {
                    stop.kill_child();
                    return Ok(None);
                }
                console.note(&format!("ending: {left_out} is left out; once more to abort"));
            }
        }
    }
    let measured = measuring.join();
    let measured =
        measured.map_err(|_| Failure::new("the measuring thread panicked: please report this"))?;
    Ok(Some(measured))
}

/// The longer of what the steps so far promise and what is left of the estimate, s.
fn time_left(share: f64, spent: f64, estimate: f64) -> f64 {
    let promised = spent / share - spent;
    promised.max((estimate - spent) * (1.0 - share))
}

/// A progress bar with the time left, s.
fn bar(share: f64, left: f64) -> String {
    const WIDTH: usize = 40;
    let done = ((share * WIDTH as f64) as usize).min(WIDTH);
    format!(
        "[{}{}] {:3.0} %  {left:.0} s left",
        "#".repeat(done),
        "-".repeat(WIDTH - done),
        share * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_comes_to_nothing() {
        // Short steps first: the estimate counts.
        assert_eq!(time_left(0.1, 1.0, 101.0), 90.0);
        assert_eq!(time_left(0.5, 80.0, 100.0), 80.0);
        assert_eq!(time_left(1.0, 80.0, 100.0), 0.0);
        assert_eq!(time_left(1.0, 120.0, 100.0), 0.0);
    }
}
