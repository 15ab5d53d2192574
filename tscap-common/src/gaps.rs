//! A histogram of signed nanoseconds that a program can fill: how far the gap
//! between two frames sent was from the one meant.
//!
//! Exact below 64 ns, then 64 buckets an octave: no more than 1/64 of the value
//! wide.

/// Buckets an octave, as a power of two.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
/// Values of this many bits and more share the last bucket: 68 s.
const MOST_BITS: u32 = 36;
/// Buckets of one sign.
const SIDE: usize = ((MOST_BITS - SUB_BITS + 1) as usize) << SUB_BITS;
/// Number of buckets.
pub const BUCKETS: usize = 2 * SIDE;

/// The bucket of a value, always less than [`BUCKETS`].
#[inline(always)]
pub const fn bucket_of(value: i64) -> usize {
    let side = side_bucket_of(value.unsigned_abs());
    if value < 0 {
        SIDE - 1 - side
    } else {
        SIDE + side
    }
}

#[inline(always)]
const fn side_bucket_of(magnitude: u64) -> usize {
    if magnitude < SUB {
        return magnitude as usize;
    }
    if magnitude >> MOST_BITS != 0 {
        return SIDE - 1;
    }
    let shift = magnitude.ilog2() - SUB_BITS;
    (((shift as u64) << SUB_BITS) + (magnitude >> shift)) as usize
}

/// The least and the greatest value of a bucket, ns.
pub const fn values_of(bucket: usize) -> (i64, i64) {
    if bucket >= SIDE {
        side_values_of(bucket - SIDE)
    } else {
        let (least, most) = side_values_of(SIDE - 1 - bucket);
        (-most, -least)
    }
}

const fn side_values_of(bucket: usize) -> (i64, i64) {
    let bucket = bucket as u64;
    if bucket < SUB {
        return (bucket as i64, bucket as i64);
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let least = (bucket - (shift << SUB_BITS)) << shift;
    (least as i64, (least + (1 << shift) - 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for exponent in 0..MOST_BITS {
            for step in [-1i64, 0, 1, 5] {
                let magnitude = (1i64 << exponent) + step;
                for value in [magnitude, -magnitude] {
                    let (least, most) = values_of(bucket_of(value));
                    assert!((least..=most).contains(&value), "{value}: {least}..={most}");
                    assert!((most - least) * 64 <= magnitude.max(64), "{value}");
                }
            }
        }
    }

    #[test]
    fn buckets_follow_each_other() {
        for bucket in SIDE..BUCKETS - 1 {
            assert_eq!(values_of(bucket).1 + 1, values_of(bucket + 1).0, "{bucket}");
        }
        assert_eq!(values_of(bucket_of(-64)), (-64, -64));
    }

    #[test]
    fn what_is_too_great_is_in_the_last_bucket() {
        assert_eq!(bucket_of(i64::MAX), BUCKETS - 1);
        assert_eq!(bucket_of(1 << MOST_BITS), BUCKETS - 1);
        assert_eq!(bucket_of(i64::MIN), 0);
    }
}
