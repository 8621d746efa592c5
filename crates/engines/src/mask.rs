//! Secrets out of what engines tell: masked before anything is stored or shown.

pub(crate) use tokdyno_domain::secrets::{SECRET_MASK as MASK, is_secret_name, masked_text};
