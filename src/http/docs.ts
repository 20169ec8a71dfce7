import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type Context, Hono } from "hono";
import { secureHeaders } from "hono/secure-headers";
import type { RequestEnv } from "./context.ts";

/** Only what this gateway serves itself: nothing is loaded from elsewhere, nothing stands in the page, nobody frames it. */
const POLICY = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'self'"],
  // The icons of the style sheet stand in it.
  imgSrc: ["'self'", "data:"],
  connectSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
};

/** Addresses are relative, so that the page also stands behind a proxy that adds a prefix. */
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Inlet API</title>
    <link rel="icon" href="docs/favicon.png">
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <div id="document"></div>
    <script src="docs/swagger-ui.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

const { resolve } = createRequire(import.meta.url);
const JAVASCRIPT = "text/javascript; charset=utf-8";

/** The files of the page, most of them from the package `swagger-ui-dist`. */
const ASSETS = {
  "swagger-ui.css": { file: resolve("swagger-ui-dist/swagger-ui.css"), type: "text/css; charset=utf-8" },
  "swagger-ui.js": { file: resolve("swagger-ui-dist/swagger-ui-bundle.js"), type: JAVASCRIPT },
  "favicon.png": { file: resolve("swagger-ui-dist/favicon-32x32.png"), type: "image/png" },
  "start.js": { file: new URL("./docs-page.js", import.meta.url), type: JAVASCRIPT },
} as const;

const CACHE_CONTROL = "public, max-age=3600";

/** `/docs`: the API's description as a page. */
export function createDocs(): Hono<RequestEnv> {
  const docs = new Hono<RequestEnv>();
  const secure = secureHeaders({ contentSecurityPolicy: POLICY, xFrameOptions: "DENY" });
  docs.use("/docs", secure);
  docs.use("/docs/*", secure);
  docs.get("/docs", (c) => c.html(PAGE));
  for (const [name, { file, type }] of Object.entries(ASSETS)) {
    docs.get(`/docs/${name}`, async (c) => answerAsset(c, await readFile(file), type));
  }
  return docs;
}

const answerAsset = (c: Context, content: Buffer<ArrayBuffer>, type: string): Response =>
  c.body(content, 200, { "Content-Type": type, "Cache-Control": CACHE_CONTROL });
