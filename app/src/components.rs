//! Parts that pages share.

pub mod badges;
pub mod chart;
pub mod comparison;
pub mod copy;
pub mod dialog;
pub mod feedback;
pub mod figures;
pub mod icon;
pub mod import_drop;
pub mod layout;
pub mod pick_form;
pub mod table;
pub mod theme;
pub mod time;

pub use badges::{
    Badge, ClassBadge, EngineName, EstablishedBadge, FlagNote, SourceBadge, StateBadge, Tone,
    VerdictBadge,
};
pub use chart::{Chart, Charts};
pub use copy::CopyButton;
pub use dialog::{CloseButton, ConfirmDialog, Dialog, DialogButton};
pub use feedback::{ChartSkeleton, EmptyState, ErrorBanner, ErrorNote, Skeleton};
pub use figures::{EstimateCell, Figure, OptionalFigure};
pub use icon::{Glyph, Icon};
pub use import_drop::ImportDrop;
pub use pick_form::PickForm;
pub use table::TableBox;
pub use time::RelativeTime;
