import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { logos } from "./logos.ts";

const inConsole = (path: string): string =>
  fileURLToPath(new URL(`../../src/console/${path}`, import.meta.url));

/** Vite configuration of the console, for `npm run build:console` and `npm run dev:console`. */
export default defineConfig({
  root: inConsole("."),
  base: "/console/",
  plugins: [logos()],
  cacheDir: fileURLToPath(new URL("../../node_modules/.cache/console", import.meta.url)),
  // Set explicitly because oxc has no preset for Preact.
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: { dedupe: ["preact"] },
  build: {
    outDir: inConsole("dist"),
    emptyOutDir: true,
    target: "es2023",
    // The content security policy forbids inline code, and `data:` URLs except for images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    license: { fileName: "licences.md" },
  },
  server: {
    // Forwards API requests to a gateway on port 8080.
    proxy: Object.fromEntries(
      ["/v1", "/hooks", "/readyz", "/docs", "/console/settings.json"].map((path) => [
        path,
        "http://127.0.0.1:8080",
      ]),
    ),
  },
});
