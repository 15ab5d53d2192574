use std::os::unix::fs::FileExt as _;
use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;

/// Reads of each of four readers of a page that is changed all the time.
const READS: u64 = 10_000;

fn file() -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(SIZE as u64).unwrap();
    file
}

/// Each word follows from the number of the change.
fn state(change: u64) -> [u64; COPY_WORDS] {
    std::array::from_fn(|at| {
        change
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(at as u64)
    })
}

/// The number of the change that all words are of.
fn change<const N: usize>(words: &[u64; N]) -> Option<u64> {
    // The inverse of the odd factor.
    let change = words[0].wrapping_mul(0xf1de_83e1_9937_733d);
    (state(change)[..N] == words[..]).then_some(change)
}

#[test]
fn no_read_is_torn_however_fast_the_page_changes() {
    let file = file();
    let mut writer = WritableMapping::of(&file).unwrap();
    writer.write(&state(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                writer.write(&state(number));
            }
            number
        });
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let page = Mapping::of(&file).unwrap();
                    let (mut before, mut read) = (0, 0);
                    for _ in 0..READS {
                        // A whole page is changed more often than it is read.
                        for words in [
                            page.latest(|| ()).map(|(words, ())| change(&words)),
                            page.whole(|| ()).map(|(words, ())| change(&words)),
                        ] {
                            let Some(words) = words else { continue };
                            let number = words.expect("all words are of one change");
                            assert!(number >= before, "{number} after {before}");
                            (before, read) = (number, read + 1);
                        }
                    }
                    read
                })
            })
            .collect();
        let read: Vec<_> = readers.into_iter().map(|it| it.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        let read: u64 = read.into_iter().map(Result::unwrap).sum();
        let written = writes.join().unwrap();
        assert!(read > 4 * READS && written > 1_000, "{read} {written}");
    });
}

/// What is in memory when a writer is killed between any two of its stores.
#[test]
fn a_writer_that_is_stopped_in_a_change_leaves_a_whole_copy() {
    let file = file();
    let mut writer = WritableMapping::of(&file).unwrap();
    let page = Mapping::of(&file).unwrap();
    let put = |at: usize, word: u64| {
        file.write_all_at(&word.to_le_bytes(), at as u64).unwrap();
    };
    let read = || page.whole(|| ()).map(|(words, ())| change(&words));
    for stop in [0, 1, 2, 100, COPY_WORDS - 1, COPY_WORDS] {
        writer.write(&state(1));
        let sequence = u64::from_le(page.0.words()[SEQUENCE].load(Ordering::Relaxed));
        put(SEQUENCE_AT, sequence + 1);
        for (at, word) in state(2).into_iter().take(stop).enumerate() {
            put(COPIES_AT + 8 * at, word);
        }
        assert_eq!(read(), Some(Some(1)), "{stop}");
        for (at, word) in state(2).into_iter().enumerate() {
            put(COPIES_AT + 8 * at, word);
        }
        put(SEQUENCE_AT, sequence + 2);
        for (at, word) in state(2).into_iter().take(stop).enumerate() {
            put(COPIES_AT + 8 * (COPY_WORDS + at), word);
        }
        assert_eq!(read(), Some(Some(2)), "{stop}");
    }
}

#[test]
fn only_a_file_of_a_page_s_length_is_mapped() {
    let file = file();
    for length in [0, 1, SIZE - 1, SIZE + 1, 2 * SIZE] {
        file.set_len(length as u64).unwrap();
        assert!(Mapping::of(&file).is_err(), "{length}");
        assert!(WritableMapping::of(&file).is_err(), "{length}");
    }
    file.set_len(SIZE as u64).unwrap();
    assert!(Mapping::of(&file).is_ok());
}
