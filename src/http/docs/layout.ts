import { html, raw } from "hono/html";
import { addressFrom, type DocsPage, type Hit, type Library, toRoot } from "./library.ts";

type Html = ReturnType<typeof html>;

export function layout(library: Library, page: DocsPage): Html {
  const headings = page.headings.length > 1 ? page.headings : [];
  return frame(
    library,
    page.path,
    page.title,
    "",
    html`
    <main id="content"><article>${raw(page.html)}</article></main>
    <nav class="sections" aria-label="On this page">
      ${headings.length > 0 ? html`<h2>On this page</h2>` : ""}
      <ul>${headings.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>
    </nav>`,
  );
}

export function searchPage(library: Library, words: string, hits: readonly Hit[]): Html {
  const found =
    hits.length === 0 ? "No results" : `${hits.length} ${hits.length === 1 ? "result" : "results"}`;
  return frame(
    library,
    "search",
    `${words}: search`,
    words,
    html`
    <main id="content">
      <h1>Search</h1>
      <p role="status">${found} for “${words}”.</p>
      <ol class="hits">
        ${hits.map(
          ({ page, path, id, title, text }) => html`<li>
            <a href="${addressFrom("search", path)}${id && `#${id}`}">${title}</a>
            ${title === page ? "" : html`<span class="of">${page}</span>`}
            <p>${text}</p>
          </li>`,
        )}
      </ol>
    </main>`,
  );
}

export const missingPage = (library: Library, path: string): Html =>
  frame(
    library,
    path,
    "Page not found",
    "",
    html`
    <main id="content">
      <h1>Page not found</h1>
      <p>Choose one from the list, or search.</p>
    </main>`,
  );

function frame(library: Library, path: string, title: string, words: string, content: Html): Html {
  const root = toRoot(path);
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${title} · Inlet</title>
    <link rel="icon" href="${root}/assets/favicon.png">
    ${library.titleOf(path) === undefined ? "" : html`<link rel="alternate" type="text/markdown" href="${markdownOf(path)}">`}
    <link rel="stylesheet" href="${root}/assets/docs.css">
    <script src="${root}/assets/copy.js" defer></script>
  </head>
  <body>
    <a class="skip" href="#content">Skip to content</a>
    <header>
      <a class="home" href="${root}">Inlet</a>
      <form role="search" action="${root}/search">
        <input type="search" name="q" value="${words}" placeholder="Search the pages" aria-label="Search the pages" required>
        <button>Search</button>
      </form>
      <a href="${root}/reference">API reference</a>
      <a href="${root.replace(/docs$/, "console")}">Console</a>
    </header>
    <div class="columns">
      <nav class="pages" aria-label="Pages">
        ${library.groups.map(
          ({ title, level, paths }) => html`${level === 2 ? html`<h2>${title}</h2>` : html`<h3>${title}</h3>`}
            ${paths.length === 0 ? "" : html`<ul>${paths.map((to) => html`<li>${entry(library, path, to)}</li>`)}</ul>`}`,
        )}
      </nav>
      ${content}
    </div>
  </body>
</html>`;
}

/** Returns the relative URL of the Markdown text of the page. */
const markdownOf = (path: string): string => (path === "" ? "docs/index.md" : `${path.split("/").at(-1)}.md`);

const entry = (library: Library, from: string, to: string): Html =>
  html`<a href="${addressFrom(from, to)}" ${from === to ? raw('aria-current="page"') : ""}>${library.titleOf(to)}</a>`;
