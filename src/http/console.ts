import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Context, Hono } from "hono";
import { secureHeaders } from "hono/secure-headers";
import type { Config } from "../config/schema.ts";
import type { RequestEnv } from "./context.ts";
import { ApiError } from "./errors.ts";

export interface ConsoleDeps {
  /** Settings for OpenID Connect sign-in. `undefined` if users can only sign in with API keys. */
  readonly signIn:
    | { readonly issuer: string; readonly clientId: string; readonly audience: string }
    | undefined;
  /** Folder with the built console. Defaults to the folder in this installation. */
  readonly dist?: string;
}

const DIST = join(import.meta.dirname, "..", "console", "dist");

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** Matches file names of the build. A name contains a hash of the content, so browsers may cache the file forever. */
const ASSET = /^[\w-]+(?:\.[\w-]+)*\.(js|css|svg|woff2)$/;

/** Encodings of the precompressed files, smallest files first. */
const ENCODINGS = [
  { name: "br", ending: ".br" },
  { name: "gzip", ending: ".gz" },
] as const;

const NOT_BUILT = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Inlet: the console is not built</title></head>
  <body>
    <h1>The console is not built</h1>
    <p>Run <code>npm run build:console</code> in the folder of this gateway, and load this page again.</p>
    <p>Everything else works without it: the API is described at <a href="/docs">/docs</a>.</p>
  </body>
</html>
`;

/** Serves the console at `/console` and redirects `/` to it. The page needs no authentication, because it contains no secrets. */
export function createConsole({ signIn, dist = DIST }: ConsoleDeps): Hono<RequestEnv> {
  const page = new Hono<RequestEnv>();
  const secure = secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      fontSrc: ["'self'"],
      imgSrc: ["'self'", "data:"],
      connectSrc: ["'self'", ...(signIn === undefined ? [] : [new URL(signIn.issuer).origin])],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
    xFrameOptions: "DENY",
    referrerPolicy: "no-referrer",
  });
  page.use("/console", secure);
  page.use("/console/*", secure);

  page.get("/", (c) => c.redirect("console"));

  page.get("/console/settings.json", (c) => {
    c.header("Cache-Control", "no-store");
    return c.json({ signIn: signIn ?? null });
  });

  page.get("/console/assets/:name", async (c) => {
    const name = c.req.param("name");
    const ending = ASSET.exec(name)?.[1] ?? "";
    const found = await readBest(c, join(dist, "assets", name), TYPES[ending] !== undefined);
    if (found === undefined) throw new ApiError("not_found", "The console has no such file.");
    return answer(c, found, TYPES[ending] ?? "", "public, max-age=31536000, immutable");
  });

  const index = async (c: Context): Promise<Response> => {
    const found = await readBest(c, join(dist, "index.html"));
    if (found === undefined) return c.html(NOT_BUILT, 503, { "Cache-Control": "no-store" });
    return answer(c, found, "text/html; charset=utf-8", "no-cache");
  };
  page.get("/console", index);
  // Every path below `/console/` returns the same page, and its script shows the matching view.
  page.get("/console/*", index);
  return page;
}

interface Found {
  readonly bytes: Buffer<ArrayBuffer>;
  readonly encoding: string | undefined;
}

/** Returns the smallest variant of a file that the client accepts. Returns `undefined` if the file does not exist. */
async function readBest(c: Context, file: string, isKnown = true): Promise<Found | undefined> {
  if (!isKnown) return undefined;
  const accepted = c.req.header("accept-encoding") ?? "";
  for (const { name, ending } of ENCODINGS) {
    if (!new RegExp(`\\b${name}\\b(?!\\s*;\\s*q=0(?:\\.0*)?(?:,|$))`).test(accepted)) continue;
    const bytes = await readIfThere(file + ending);
    if (bytes) return { bytes, encoding: name };
  }
  const bytes = await readIfThere(file);
  return bytes && { bytes, encoding: undefined };
}

async function readIfThere(file: string): Promise<Buffer<ArrayBuffer> | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

const answer = (c: Context, { bytes, encoding }: Found, type: string, cacheControl: string): Response =>
  c.body(bytes, 200, {
    "Content-Type": type,
    "Cache-Control": cacheControl,
    Vary: "Accept-Encoding",
    ...(encoding === undefined ? {} : { "Content-Encoding": encoding }),
  });

/** Returns the settings of OpenID Connect sign-in, or `undefined` if they are incomplete. */
export function consoleSignIn({
  oidcIssuer,
  oidcAudience,
  oidcConsoleClientId,
}: Pick<Config, "oidcIssuer" | "oidcAudience" | "oidcConsoleClientId">): ConsoleDeps["signIn"] {
  if (oidcIssuer === undefined || oidcAudience === undefined || oidcConsoleClientId === undefined)
    return undefined;
  return { issuer: oidcIssuer, audience: oidcAudience, clientId: oidcConsoleClientId };
}
