//! Compression beforehand, so that the server never does it while it measures.

use std::io::Write;

use anyhow::Result;

use super::Profile;

/// A way to compress, and the file ending that stands for it.
pub(super) struct Encoding {
    pub(super) extension: &'static str,
    pub(super) compress: fn(&[u8], Profile) -> Result<Vec<u8>>,
}

/// All that browsers of today accept from anybody.
pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding {
        extension: "gz",
        compress: gzip,
    },
    Encoding {
        extension: "br",
        compress: brotli,
    },
];

fn gzip(content: &[u8], profile: Profile) -> Result<Vec<u8>> {
    let level = match profile {
        Profile::Release => flate2::Compression::best(),
        Profile::Dev => flate2::Compression::fast(),
    };
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

fn brotli(mut content: &[u8], profile: Profile) -> Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: match profile {
            Profile::Release => 11,
            Profile::Dev => 1,
        },
        lgwin: 22,
        size_hint: content.len(),
        ..brotli::enc::BrotliEncoderParams::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut content, &mut compressed, &parameters)?;
    Ok(compressed)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn both_come_back_as_they_were() {
        let content = b"tokens per second, ".repeat(1000);
        for profile in [Profile::Release, Profile::Dev] {
            let mut back = Vec::new();
            flate2::read::GzDecoder::new(gzip(&content, profile).unwrap().as_slice())
                .read_to_end(&mut back)
                .unwrap();
            assert_eq!(back, content);

            let compressed = brotli(&content, profile).unwrap();
            assert!(compressed.len() < content.len() / 10);
            let mut back = Vec::new();
            brotli::BrotliDecompress(&mut compressed.as_slice(), &mut back).unwrap();
            assert_eq!(back, content);
        }
    }
}
