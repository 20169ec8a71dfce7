import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import MiniSearch from "minisearch";
import type { Presets } from "../../verify/presets.ts";
import { type Rendered, renderMarkdown } from "./markdown.ts";
import { presetPage } from "./preset-page.ts";

export interface DocsPage extends Rendered {
  /** Path of a page below `/docs`, such as `settings` or `presets/stripe`. Empty for the start page. */
  readonly path: string;
}

/** A heading of the start page with the pages below it. The pages of a kind are divided by subheadings. */
export interface DocsGroup {
  readonly title: string;
  readonly level: 2 | 3;
  readonly paths: readonly string[];
}

export interface Hit {
  readonly page: string;
  readonly path: string;
  /** URL fragment of the section. Empty for the top of the page. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

export interface Library {
  readonly groups: readonly DocsGroup[];
  readonly titleOf: (path: string) => string | undefined;
  readonly page: (path: string) => DocsPage | undefined;
  /** Returns the Markdown text of a page, whose links lead to the Markdown text of other pages. */
  readonly markdown: (path: string) => string | undefined;
  /** Lists all pages with a description, in the format of llmstxt.org. The links are relative to the root of the gateway. */
  readonly llmsText: () => string;
  /** Returns the sections that contain every search word, best match first. Words also match as prefixes. */
  readonly search: (words: string) => Promise<readonly Hit[]>;
}

const FOLDER = new URL("../../docs/", import.meta.url);
/** Matches the front matter, which names the kind of a page. Readers do not see it. */
const FRONT_MATTER = /^---\n[\s\S]*?\n---\n+/;
const MAX_HITS = 30;
const EXCERPT_CHARS = 240;
/** Maximum number of search words. Each word scans the whole index, and anyone can search. */
const MAX_WORDS = 8;
const PROVIDER_RANK = 0.3;

const tokenize: (text: string) => string[] = MiniSearch.getDefault("tokenize");

/**
 * Opens the documentation pages. The first search renders all pages, which takes some tenths of a second, so it yields to the event loop
 * between pages.
 */
export function openLibrary(presets: Presets): Library {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(".md"));
  const sources = new Map(
    files.map(
      (file) =>
        [pathOf(file), readFileSync(new URL(file, FOLDER), "utf8").replace(FRONT_MATTER, "")] as const,
    ),
  );
  for (const preset of presets.values()) sources.set(`presets/${preset.preset}`, presetPage(preset));
  const pages = new Map<string, DocsPage>();
  const page = (path: string): DocsPage | undefined => {
    const text = sources.get(path);
    if (text === undefined) return undefined;
    const rendered = pages.get(path) ?? { path, ...renderMarkdown(text, addressIn(path)) };
    pages.set(path, rendered);
    return rendered;
  };
  const titleOf = (path: string): string | undefined =>
    /^# ([^:\n]*)/.exec(sources.get(path) ?? "")?.[1] ?? page(path)?.title;
  let index: Promise<MiniSearch> | undefined;
  return {
    groups: groupsOf(sources.get("") ?? ""),
    titleOf,
    page,
    markdown(path) {
      const text = sources.get(path);
      return text?.replaceAll(LINK, (link, href: string) => {
        const target = markdownAddress(path, href);
        return target === undefined ? link : `](${target})`;
      });
    },
    llmsText() {
      const withoutImages = (sources.get("") ?? "").replaceAll(/!\[[^\]]*\]\([^)]*\)\n+/g, "");
      const guides = withoutImages.replaceAll(
        LINK,
        (_link, href: string) => `](${markdownAddress("", href)?.replace(/^/, "docs/") ?? href})`,
      );
      const providers = [...presets.values()].map(
        ({ preset, title }) => `- [${title}](docs/presets/${preset}.md)`,
      );
      return `${guides}\n## Providers\n\n${providers.join("\n")}\n`;
    },
    async search(words) {
      index ??= indexOf([...sources.keys()], page);
      return (await index)
        .search(words)
        .slice(0, MAX_HITS)
        .map((found) => {
          const hit: Hit = found as unknown as Hit;
          const { path, id, title } = hit;
          return { page: titleOf(path) ?? path, path, id, title, text: excerpt(hit.text, found.terms) };
        });
    },
  };
}

/** Returns the relative URL of the start page. URLs are relative, because a reverse proxy may serve them under a path prefix. */
export const toRoot = (path: string): string =>
  `${"../".repeat(path === "" ? 0 : path.split("/").length)}docs`;

export const addressFrom = (from: string, to: string): string =>
  to === "" ? toRoot(from) : `${toRoot(from)}/${to}`;

/** The target of a Markdown link or image. */
const LINK = /\]\(([^)\s]+)\)/g;

/** Returns the relative URL of the Markdown text of a linked page. Returns `undefined` for other links. */
function markdownAddress(from: string, href: string): string | undefined {
  const up = "../".repeat(from.split("/").length - 1);
  const [, preset] = /^\.\.\/verify\/presets\/([\w-]+)\.json$/.exec(href) ?? [];
  if (preset !== undefined) return `${up}presets/${preset}.md`;
  return /^(?:[\w-]+\.md|images\/[\w-]+\.\w+)(?:#.*)?$/.test(href) ? up + href : undefined;
}

const pathOf = (file: string): string => (file === "index.md" ? "" : file.replace(/\.md$/, ""));

/** Returns a function that converts a link to a source file into a link to its page. Returns `undefined` for files without a page. */
function addressIn(from: string) {
  return (href: string): string | undefined => {
    if (/^(https?:|#)/.test(href)) return href;
    if (/^images\/[\w-]+\.(?:png|svg)$/.test(href)) return addressFrom(from, href);
    const [, file, fragment = ""] = /^([\w-]+\.md)(#.*)?$/.exec(href) ?? [];
    if (file !== undefined) return addressFrom(from, pathOf(file)) + fragment;
    const [, preset] = /^\.\.\/verify\/presets\/([\w-]+)\.json$/.exec(href) ?? [];
    if (preset !== undefined) return addressFrom(from, `presets/${preset}`);
    return /^\/(docs|console)\b/.test(href)
      ? `${toRoot(from).replace(/docs$/, "")}${href.slice(1)}`
      : undefined;
  };
}

const groupsOf = (index: string): readonly DocsGroup[] =>
  [...index.matchAll(/^(##|###) (.+)\n([^#]*)/gm)].map(([, { length } = "", title = "", part = ""]) => ({
    title,
    level: length === 2 ? 2 : 3,
    paths: [...part.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, file = ""]) => pathOf(file)),
  }));

async function indexOf(paths: readonly string[], pageOf: Library["page"]): Promise<MiniSearch> {
  const index = new MiniSearch({
    idField: "key",
    fields: ["title", "page", "text"],
    storeFields: ["path", "id", "title", "text"],
    searchOptions: {
      combineWith: "AND",
      prefix: ({ length }) => length > 1,
      tokenize: (text) => [...new Set(tokenize(text))].slice(0, MAX_WORDS),
      boost: { title: 4, page: 2 },
      // Ranks guides above provider pages, which are numerous and similar to each other.
      boostDocument: (key: string) => (key.startsWith("presets/") ? PROVIDER_RANK : 1),
    },
  });
  for (const path of paths) {
    const { title: page = "", places = [] } = pageOf(path) ?? {};
    index.addAll(places.map((place, at) => ({ ...place, key: `${path}#${at}`, page, path })));
    await nextTurn();
  }
  return index;
}

function excerpt(text: string, terms: readonly string[]): string {
  const plain = text.replaceAll(/\s+/g, " ").trim();
  const places = terms.map((term) => plain.toLowerCase().indexOf(term)).filter((at) => at >= 0);
  const from = Math.max(0, Math.min(...places, plain.length) - EXCERPT_CHARS / 4);
  const start = places.length === 0 || from === 0 ? 0 : plain.indexOf(" ", from) + 1;
  const piece = plain.slice(start, start + EXCERPT_CHARS);
  return `${start > 0 ? "… " : ""}${piece}${start + EXCERPT_CHARS < plain.length ? " …" : ""}`;
}
