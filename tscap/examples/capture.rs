//! Captures ten frames on veth0 and prints the account.

use tscap::{Capture, Event, Failure};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    capture("veth0", "out.pcapng").await
}

/// Captures on `interface` into the file `path`.
pub async fn capture(interface: &str, path: &str) -> Result<(), Failure> {
    let mut on_event = |event: Event| eprintln!("{event}");
    let mut capture = Capture::on([interface], path);
    capture.count = Some(10);
    let mut running = capture.start(&mut on_event).await?;
    let stop = running.until_stopped(&mut on_event).await?;
    let never = std::future::pending;
    let ended = running.finish(stop, never, &mut on_event).await?;
    if let Some(summary) = ended.summary {
        println!("{} of {} frames written", summary.written, summary.seen);
    }
    Ok(())
}
