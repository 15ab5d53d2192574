use super::*;

const MS: u64 = 1_000_000;
const START: u64 = 1_700_000_000_000_000_000;

fn knot(at_ms: u64, ahead_ns: i64, utc: Option<u64>) -> Knot {
    Knot {
        raw: 5_000 + at_ms * MS,
        real_ns: (START + at_ms * MS).checked_add_signed(ahead_ns).unwrap(),
        bound_ns: 40,
        utc: Utc {
            bound_ns: utc,
            ..Utc::default()
        },
    }
}

fn pieces(knots: impl IntoIterator<Item = Knot>) -> Vec<Piece> {
    let mut past = Past::default();
    for knot in knots {
        past.extend(knot, NsPerCycle::ONE);
    }
    past.pieces(NsPerCycle::ONE)
}

#[test]
fn readings_on_a_line_are_one_piece_until_it_is_long() {
    let pieces = pieces((0..=250).map(|at| knot(at * 10, 0, Some(7))));
    let ends: Vec<_> = pieces.iter().map(|it| [it.from, it.until]).collect();
    let end = |ms: u64| 5_000 + ms * MS;
    assert_eq!(
        ends,
        [
            [end(0), end(1_000)],
            [end(1_000), end(2_000)],
            [end(2_000), end(2_500)]
        ]
    );
    assert!(
        pieces
            .iter()
            .all(|it| it.host_bound_ns == 42 && it.utc_bound_ns == 7)
    );
    assert!(pieces.iter().all(|it| it.rate == NsPerCycle::ONE.0));
}

#[test]
fn a_bend_ends_a_piece() {
    let bent = |at: u64| knot(at * 10, 30 * (at.saturating_sub(50)).cast_signed(), None);
    let pieces = pieces((0..=70).map(bent));
    assert!((2..=5).contains(&pieces.len()), "{pieces:?}");
    for piece in &pieces {
        assert!(piece.host_bound_ns <= 42 + FARTHEST_NS);
        assert_eq!(piece.utc_bound_ns, UNKNOWN);
    }
    assert!(pieces.windows(2).all(|pair| pair[0].until == pair[1].from));
}

#[test]
fn utc_that_is_not_known_yet_is_a_piece_of_its_own() {
    let pieces = pieces((0..10).map(|at| knot(at * 10, 0, (at >= 5).then_some(at))));
    let found: Vec<_> = pieces
        .iter()
        .map(|it| (it.until, it.utc_bound_ns))
        .collect();
    let end = |ms: u64| 5_000 + ms * MS;
    assert_eq!(
        found,
        [(end(40), UNKNOWN), (end(50), UNKNOWN), (end(90), 9)]
    );
}

#[test]
fn the_oldest_pieces_are_forgotten() {
    let pieces = pieces((0..=10_000).map(|at| knot(at * 10, 0, Some(7))));
    assert_eq!(pieces.len(), PIECES);
    assert_eq!(pieces.last().unwrap().until, 5_000 + 100_000 * MS);
}

#[test]
fn what_is_cut_out_of_a_piece_is_in_none() {
    let cut = |first: u64, last: u64| {
        let mut past = Past::default();
        for at in 0..=10 {
            past.extend(knot(at * 10, 0, Some(7)), NsPerCycle::ONE);
        }
        past.interrupt(NsPerCycle::ONE);
        past.cut(first, last);
        let pieces = past.pieces(NsPerCycle::ONE);
        pieces
            .first()
            .map(|it| [it.from, it.until, it.real_ns - START])
    };
    let end = 5_000 + 100 * MS;
    assert_eq!(cut(0, 4_999), Some([5_000, end, 0]));
    assert_eq!(cut(end + 1, end + 9), Some([5_000, end, 0]));
    assert_eq!(cut(6_000, end + 9), Some([5_000, 5_999, 0]));
    assert_eq!(cut(6_000, 7_000), Some([5_000, 5_999, 0]));
    assert_eq!(cut(5_000, 5_100), Some([5_101, end, 101]));
    assert_eq!(cut(0, end), None);
}
