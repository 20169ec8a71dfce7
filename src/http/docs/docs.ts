import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type Context, Hono } from "hono";
import { secureHeaders } from "hono/secure-headers";
import { loadOnce } from "../../lib/load-once.ts";
import type { Presets } from "../../verify/presets.ts";
import type { RequestEnv } from "../context.ts";
import type * as Layout from "./layout.ts";
import type { Library } from "./library.ts";

/** Content security policy. Pages may load only files of this gateway, no inline scripts, and cannot be embedded in frames. */
const POLICY = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'self'"],
  // The style sheet of the API reference embeds its icons as `data:` URLs.
  imgSrc: ["'self'", "data:"],
  connectSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'self'"],
  frameAncestors: ["'none'"],
};

/** Page of the API reference. Its URLs are relative, because a reverse proxy may serve it under a path prefix. */
const REFERENCE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>API reference · Inlet</title>
    <link rel="icon" href="assets/favicon.png">
    <link rel="stylesheet" href="assets/swagger-ui.css">
  </head>
  <body>
    <div id="document"></div>
    <script src="assets/swagger-ui.js"></script>
    <script src="assets/reference.js"></script>
  </body>
</html>
`;

const { resolve } = createRequire(import.meta.url);
const JAVASCRIPT = "text/javascript; charset=utf-8";
const MARKDOWN = "text/markdown; charset=utf-8";
const CSS = "text/css; charset=utf-8";

const ASSETS = {
  "copy.js": { file: new URL("./copy.js", import.meta.url), type: JAVASCRIPT },
  "docs.css": { file: new URL("./docs.css", import.meta.url), type: CSS },
  "swagger-ui.css": { file: resolve("swagger-ui-dist/swagger-ui.css"), type: CSS },
  "swagger-ui.js": { file: resolve("swagger-ui-dist/swagger-ui-bundle.js"), type: JAVASCRIPT },
  "favicon.png": { file: resolve("swagger-ui-dist/favicon-32x32.png"), type: "image/png" },
  "reference.js": { file: new URL("./reference.js", import.meta.url), type: JAVASCRIPT },
} as const;

const IMAGES = {
  "console.png": { file: new URL("../../docs/images/console.png", import.meta.url), type: "image/png" },
  "path.svg": { file: new URL("../../docs/images/path.svg", import.meta.url), type: "image/svg+xml" },
} as const;

const CACHE_CONTROL = "public, max-age=3600";
const MAX_QUERY_CHARS = 200;

export function createDocs({ presets }: { readonly presets: Presets }): Hono<RequestEnv> {
  const docs = new Hono<RequestEnv>();
  const secure = secureHeaders({ contentSecurityPolicy: POLICY, xFrameOptions: "DENY" });
  docs.use("/docs", secure);
  docs.use("/docs/*", secure);
  const load = loadOnce(() => loadDocumentation(presets));

  docs.get("/docs", async (c) => answerPage(c, await load(), ""));
  docs.get("/docs/", (c) => c.redirect("../docs"));
  docs.get("/docs/reference", (c) => c.html(REFERENCE));
  docs.get("/docs/search", async (c) => {
    const words = (c.req.query("q") ?? "").slice(0, MAX_QUERY_CHARS);
    const { layout, library } = await load();
    return c.html(layout.searchPage(library, words, await library.search(words)));
  });
  for (const [folder, files] of Object.entries({ assets: ASSETS, images: IMAGES })) {
    for (const [name, { file, type }] of Object.entries(files)) {
      docs.get(`/docs/${folder}/${name}`, async (c) =>
        c.body(await readFile(file), 200, { "Content-Type": type, "Cache-Control": CACHE_CONTROL }),
      );
    }
  }
  const markdown = (c: Context, text: string | undefined) =>
    text === undefined ? c.notFound() : c.body(text, 200, { "Content-Type": MARKDOWN });
  docs.get("/llms.txt", async (c) => c.text((await load()).library.llmsText()));
  docs.get("/docs/:file{[\\w-]+\\.md}", async (c) => {
    const path = c.req.param("file").replace(/\.md$/, "");
    return markdown(c, (await load()).library.markdown(path === "index" ? "" : path));
  });
  docs.get("/docs/presets/:file{[\\w-]+\\.md}", async (c) =>
    markdown(c, (await load()).library.markdown(`presets/${c.req.param("file").replace(/\.md$/, "")}`)),
  );
  docs.get("/docs/:page", async (c) => answerPage(c, await load(), c.req.param("page")));
  docs.get("/docs/presets/:preset", async (c) =>
    answerPage(c, await load(), `presets/${c.req.param("preset")}`),
  );
  return docs;
}

interface Documentation {
  readonly library: Library;
  readonly layout: typeof Layout;
}

/** Loads the documentation with its Markdown parser and search. The first request needs it, and most gateways never serve it. */
async function loadDocumentation(presets: Presets): Promise<Documentation> {
  const [{ openLibrary }, layout] = await Promise.all([import("./library.ts"), import("./layout.ts")]);
  return { library: openLibrary(presets), layout };
}

function answerPage(
  c: Context,
  { library, layout }: Documentation,
  path: string,
): Response | Promise<Response> {
  const page = library.page(path);
  return page ? c.html(layout.layout(library, page)) : c.html(layout.missingPage(library, path), 404);
}
