//! The Board.

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::views::board::{BoardFilter, BoardView};

use crate::AppError;

/// What the Board shows under this filter.
///
/// # Errors
/// The database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "board", input = Json)]
pub async fn board(filter: BoardFilter) -> Result<BoardView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.board(&actor, &filter)
        .await
        .map(|view| view.map_charts(crate::draw::chart_view))
        .map_err(super::context::answer)
}
