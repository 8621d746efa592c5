//! Chunk times as stored: unsigned LEB128 varints, seven bits a byte, lowest
//! first, the high bit set while more follow. Gaps are mostly two bytes.

/// Packs numbers.
pub(crate) fn pack(numbers: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() * 2);
    for &number in numbers {
        let mut rest = number;
        loop {
            let low = (rest & 0x7f) as u8;
            rest >>= 7;
            if rest == 0 {
                bytes.push(low);
                break;
            }
            bytes.push(low | 0x80);
        }
    }
    bytes
}

/// Unpacks them; none if the bytes were not written by [`pack`].
pub(crate) fn unpack(bytes: &[u8]) -> Option<Vec<u32>> {
    let mut numbers = Vec::with_capacity(bytes.len() / 2);
    let (mut value, mut shift) = (0_u64, 0_u32);
    for &byte in bytes {
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            numbers.push(u32::try_from(value).ok()?);
            (value, shift) = (0, 0);
        } else {
            shift += 7;
            if shift > 28 {
                return None;
            }
        }
    }
    (shift == 0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        let numbers = [0, 1, 127, 128, 300, 16_383, 16_384, 11_000, u32::MAX];
        assert_eq!(unpack(&pack(&numbers)), Some(numbers.to_vec()));
        assert_eq!(unpack(&pack(&[])), Some(Vec::new()));
        // The example of the DWARF specification: 624485 is E5 8E 26.
        assert_eq!(pack(&[624_485]), [0xE5, 0x8E, 0x26]);
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(unpack(&[0x80]), None, "cut off");
        assert_eq!(
            unpack(&[0xff, 0xff, 0xff, 0xff, 0x7f]),
            None,
            "beyond 32 bits"
        );
        assert_eq!(unpack(&[0x80; 6]), None, "too long");
    }
}
