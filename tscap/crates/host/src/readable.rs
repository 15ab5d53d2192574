//! Waits in a tokio runtime until a descriptor can be read.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};

use tokio::io::{Interest, unix::AsyncFd};

/// Something with a non-blocking descriptor, which the current runtime watches. One task
/// may wait for it.
#[derive(Debug)]
pub struct Readable<T> {
    inner: T,
    /// A second descriptor of the same open file.
    watched: AsyncFd<OwnedFd>,
}

impl<T: AsFd> Readable<T> {
    /// Has the runtime that this is called in watch `inner`.
    ///
    /// # Errors
    /// If there is no descriptor left, or the runtime can't watch it.
    pub fn new(inner: T) -> io::Result<Self> {
        let descriptor = inner.as_fd().try_clone_to_owned()?;
        // SAFETY: an `OwnedFd` has the same open descriptor until it is dropped, and the
        // `AsyncFd` owns it and ends its registration before that.
        let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
        let watched = watched.map_err(|error| error.into_parts().1)?;
        Ok(Self { inner, watched })
    }

    /// Waits until there is something to read. Afterwards all of it must be read, until the
    /// descriptor would block: the next wait is for what comes later. Safe to cancel.
    ///
    /// # Errors
    /// If the runtime has ended.
    pub async fn wait(&self) -> io::Result<()> {
        poll_fn(|context| self.poll(context)).await
    }

    /// As [`wait`](Self::wait), for one of several.
    ///
    /// # Errors
    /// If the runtime has ended.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.watched.poll_read_ready(context))?.clear_ready();
        Poll::Ready(Ok(()))
    }

    /// What is watched.
    pub fn get(&self) -> &T {
        &self.inner
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _, pipe};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn each_arrival_ends_a_wait() {
        let (reader, mut writer) = pipe().expect("a pipe");
        let readable = Readable::new(reader).expect("this runtime has a reactor");
        for _ in 0..2 {
            let nothing = timeout(Duration::from_millis(1), readable.wait()).await;
            assert!(nothing.is_err());
            writer.write_all(&[1]).expect("room");
            let news = timeout(Duration::from_secs(10), readable.wait()).await;
            news.expect("before the deadline").expect("a runtime");
            let read = readable.get().read(&mut [0; 8]);
            assert_eq!(read.expect("readable"), 1);
        }
    }
}
