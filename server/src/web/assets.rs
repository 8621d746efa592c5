//! The built files: style sheet, WebAssembly, plotly.js, icons.
//!
//! `make web` writes them below a site directory together with `manifest.json`,
//! which names them with their content hashes. A file whose name has a hash never
//! changes, so browsers may keep it for ever.

use std::{
    path::{Path, PathBuf},
    sync::RwLock,
};

use axum::{Router, middleware::map_response, response::Response};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, VARY},
};
use serde::Deserialize;
use tokdyno_app::Assets;
use tower_http::services::ServeDir;

use super::Problem;

const VARIABLE: &str = "TOKDYNO_SITE";
const MANIFEST: &str = "manifest.json";

/// There is nothing to show in a browser.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssetsError {
    /// No site directory.
    #[error(
        "The built pages were not found ({MANIFEST} is in none of: {0}). Build them with `make web`, or name their folder in {VARIABLE}."
    )]
    Missing(String),
    /// The manifest is not what it should be.
    #[error("{path} cannot be read ({reason}). Build the pages again with `make web`.")]
    Manifest {
        /// The manifest's path.
        path: String,
        /// Why.
        reason: String,
    },
}

/// What the manifest says, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Manifest {
    build_id: String,
    js: String,
    wasm: String,
    css: String,
    plotly: String,
    #[serde(default)]
    public: Vec<String>,
}

/// The site directory with its manifest.
#[derive(Debug)]
pub(crate) struct AssetStore {
    folder: PathBuf,
    public: Vec<String>,
    current: RwLock<Assets>,
    /// Read the manifest anew for each page.
    follow: bool,
}

impl AssetStore {
    /// Finds the site directory and reads its manifest. With `follow` the
    /// manifest is read again for each page, for `make dev`.
    ///
    /// # Errors
    /// [`AssetsError`] when there is none or it cannot be read.
    pub(crate) fn find(follow: bool) -> Result<Self, AssetsError> {
        let own = std::env::current_exe().ok();
        let beside = own.as_deref().and_then(Path::parent);
        let places: Vec<PathBuf> = match std::env::var_os(VARIABLE) {
            Some(named) => vec![PathBuf::from(named)],
            None => beside
                .into_iter()
                .flat_map(|folder| [folder.join("site"), folder.join("../site")])
                .collect(),
        };
        Self::open(&places, follow)
    }

    fn open(places: &[PathBuf], follow: bool) -> Result<Self, AssetsError> {
        let Some(folder) = places.iter().find(|folder| folder.join(MANIFEST).is_file()) else {
            let looked: Vec<String> = places
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            return Err(AssetsError::Missing(looked.join(", ")));
        };
        let manifest = read(folder)?;
        Ok(Self {
            folder: folder.clone(),
            public: manifest.public.clone(),
            current: RwLock::new(assets(manifest)),
            follow,
        })
    }

    /// The addresses of the built files.
    pub(crate) fn current(&self) -> Assets {
        if self.follow
            // While it is being written anew, the old one goes on.
            && let Ok(manifest) = read(&self.folder)
            && let Ok(mut current) = self.current.write()
        {
            *current = assets(manifest);
        }
        self.current
            .read()
            .map_or_else(|poisoned| poisoned.into_inner().clone(), |a| a.clone())
    }

    /// Serves `/pkg/*` and the public files, compressed where the browser can.
    pub(crate) fn routes<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let files = |folder: PathBuf| {
            ServeDir::new(folder)
                .precompressed_br()
                .precompressed_gzip()
                .append_index_html_on_directories(false)
        };
        let hashed = Router::new()
            .nest_service("/pkg", files(self.folder.join("pkg")))
            .layer(map_response(|response| {
                cached(response, "public, max-age=31536000, immutable")
            }));
        let mut public = Router::new();
        for path in &self.public {
            // A path that is no plain file name would be a route pattern.
            if path.starts_with('/') && !path.contains(['{', '}', '*']) && !path.contains("..") {
                public = public.route_service(path, files(self.folder.clone()));
            }
        }
        let public = public.layer(map_response(|response| {
            cached(response, "public, max-age=600")
        }));
        hashed.merge(public)
    }
}

#[expect(clippy::unused_async, reason = "map_response wants a future")]
async fn cached(mut response: Response, policy: &'static str) -> Response {
    use axum::response::IntoResponse;
    if response.status() == StatusCode::NOT_FOUND {
        return Problem::not_found().into_response();
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(policy));
    // The same address yields different bytes for different browsers.
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn read(folder: &Path) -> Result<Manifest, AssetsError> {
    let path = folder.join(MANIFEST);
    let broken = |reason: String| AssetsError::Manifest {
        path: path.display().to_string(),
        reason,
    };
    let text = std::fs::read(&path).map_err(|error| broken(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))
}

fn assets(manifest: Manifest) -> Assets {
    Assets {
        js: manifest.js,
        wasm: manifest.wasm,
        css: manifest.css,
        plotly: manifest.plotly,
        build_id: manifest.build_id,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::{Request, header::CONTENT_ENCODING};
    use tower::ServiceExt;

    use super::*;

    fn written(build_id: &str) -> String {
        format!(
            r#"{{"build_id":"{build_id}","js":"/pkg/a.1.js","wasm":"/pkg/a.2.wasm","css":"/pkg/a.3.css","plotly":"/pkg/p.4.js","public":["/favicon.svg"],"sizes":{{}}}}"#
        )
    }

    fn site() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("pkg")).expect("made");
        for (name, text) in [
            (MANIFEST, written("b1").as_str()),
            ("favicon.svg", "<svg/>"),
            ("secret.txt", "no"),
            ("pkg/a.1.js", "js"),
            ("pkg/a.1.js.br", "brotli"),
        ] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        folder
    }

    async fn get(router: &Router, path: &str, encoding: &str) -> Response {
        let request = Request::get(path)
            .header("accept-encoding", encoding)
            .body(Body::empty())
            .expect("a request");
        router.clone().oneshot(request).await.expect("a reply")
    }

    #[tokio::test]
    async fn hashed_files_are_kept_for_ever_and_sent_compressed() {
        let folder = site();
        let store = AssetStore::open(&[folder.path().to_owned()], false).expect("a site");
        let router: Router = store.routes();
        let reply = get(&router, "/pkg/a.1.js", "br, gzip").await;
        assert_eq!(reply.status(), StatusCode::OK);
        assert_eq!(reply.headers()[CONTENT_ENCODING], "br");
        assert!(
            reply.headers()[CACHE_CONTROL]
                .to_str()
                .expect("text")
                .contains("immutable")
        );
        assert!(
            get(&router, "/pkg/a.1.js", "identity")
                .await
                .headers()
                .get(CONTENT_ENCODING)
                .is_none()
        );
        let icon = get(&router, "/favicon.svg", "identity").await;
        assert_eq!(icon.headers()[CACHE_CONTROL], "public, max-age=600");
        for path in ["/pkg/none.js", "/pkg/../secret.txt", "/secret.txt"] {
            let reply = get(&router, path, "identity").await;
            assert_eq!(reply.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn a_rebuilt_site_is_followed_only_when_asked() {
        let folder = site();
        let places = [folder.path().to_owned()];
        let fixed = AssetStore::open(&places, false).expect("a site");
        let followed = AssetStore::open(&places, true).expect("a site");
        std::fs::write(folder.path().join(MANIFEST), written("b2")).expect("written");
        assert_eq!(fixed.current().build_id, "b1");
        assert_eq!(followed.current().build_id, "b2");
        std::fs::write(folder.path().join(MANIFEST), "{").expect("written");
        assert_eq!(followed.current().build_id, "b2");
    }

    #[test]
    fn a_missing_site_names_the_remedy() {
        let error = AssetStore::open(&[PathBuf::from("/nowhere")], false).expect_err("missing");
        assert!(error.to_string().contains("make web"), "{error}");
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }
}
