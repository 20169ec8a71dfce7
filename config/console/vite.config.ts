import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const inConsole = (path: string): string =>
  fileURLToPath(new URL(`../../src/console/${path}`, import.meta.url));

/** How the console's page is built (`npm run build:console`), and served while it is worked on (`npm run dev:console`). */
export default defineConfig({
  root: inConsole("."),
  base: "/console/",
  cacheDir: fileURLToPath(new URL("../../node_modules/.cache/console", import.meta.url)),
  // By hand, for the compiler has no preset of its own for Preact.
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: { dedupe: ["preact"] },
  build: {
    outDir: inConsole("dist"),
    emptyOutDir: true,
    target: "es2023",
    // The page allows itself nothing inline, nor from `data:` but pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    license: { fileName: "licences.md" },
  },
  server: {
    // A gateway beside it answers what the page asks for.
    proxy: Object.fromEntries(
      ["/v1", "/hooks", "/readyz", "/docs", "/console/settings.json"].map((path) => [
        path,
        "http://127.0.0.1:8080",
      ]),
    ),
  },
});
