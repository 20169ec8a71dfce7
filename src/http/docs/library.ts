import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import MiniSearch from "minisearch";
import type { Presets } from "../../verify/presets.ts";
import { type Rendered, renderMarkdown } from "./markdown.ts";
import { presetPage } from "./preset-page.ts";

/** A guide, or the page of a provider. */
export interface DocsPage extends Rendered {
  /** Its address under `/docs`, as `settings` or `presets/stripe`; of the first page empty. */
  readonly path: string;
}

/** A group of the list of pages: a heading of the first page with the pages that are named under it. */
export interface DocsGroup {
  readonly title: string;
  readonly paths: readonly string[];
}

/** A place that was found, and the words around what was looked for. */
export interface Hit {
  readonly page: string;
  readonly path: string;
  /** The fragment; empty: the page's beginning. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

export interface Library {
  readonly groups: readonly DocsGroup[];
  readonly titleOf: (path: string) => string | undefined;
  readonly page: (path: string) => DocsPage | undefined;
  /** The places that hold all words, or their beginnings; best first. */
  readonly search: (words: string) => Promise<readonly Hit[]>;
}

const FOLDER = new URL("../../docs/", import.meta.url);
const MAX_HITS = 30;
const EXCERPT_CHARS = 240;
/** Of what is looked for: each one goes through the whole index, and anybody may ask. */
const MAX_WORDS = 8;
const PROVIDER_RANK = 0.3;

const tokenize: (text: string) => string[] = MiniSearch.getDefault("tokenize");

/**
 * The pages of `src/docs` and one for each provider. All are read at once; each is rendered when it is asked for. The first search
 * renders all of them, some tenths of a second of work, page by page: deliveries are taken in between.
 */
export function openLibrary(presets: Presets): Library {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(".md"));
  const sources = new Map(
    files.map((file) => [pathOf(file), readFileSync(new URL(file, FOLDER), "utf8")] as const),
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

/** The way from a page to the first one, relative: the pages also stand behind a proxy that adds a prefix. */
export const toRoot = (path: string): string =>
  `${"../".repeat(path === "" ? 0 : path.split("/").length)}docs`;

/** The address of a page, seen from another. */
export const addressFrom = (from: string, to: string): string =>
  to === "" ? toRoot(from) : `${toRoot(from)}/${to}`;

const pathOf = (file: string): string => (file === "index.md" ? "" : file.replace(/\.md$/, ""));

/** Links between the files are links between the pages; a file that is not served is named only. */
function addressIn(from: string) {
  return (href: string): string | undefined => {
    if (/^(https?:|#)/.test(href)) return href;
    if (/^images\/[\w-]+\.png$/.test(href)) return addressFrom(from, href);
    const [, file, fragment = ""] = /^([\w-]+\.md)(#.*)?$/.exec(href) ?? [];
    if (file !== undefined) return addressFrom(from, pathOf(file)) + fragment;
    const [, preset] = /^\.\.\/verify\/presets\/([\w-]+)\.json$/.exec(href) ?? [];
    if (preset !== undefined) return addressFrom(from, `presets/${preset}`);
    return /^\/(docs|console)\b/.test(href)
      ? `${toRoot(from).replace(/docs$/, "")}${href.slice(1)}`
      : undefined;
  };
}

/** What the first page lists, heading by heading. */
function groupsOf(index: string): readonly DocsGroup[] {
  return index
    .split(/^## /m)
    .slice(1)
    .map((part) => ({
      title: part.split("\n")[0] ?? "",
      paths: [...part.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, file = ""]) => pathOf(file)),
    }))
    .filter(({ paths }) => paths.length > 0);
}

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
      // The providers' pages are many and alike: a guide, or a row of one, answers first.
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

/** The text around the first word that was found. */
function excerpt(text: string, terms: readonly string[]): string {
  const plain = text.replaceAll(/\s+/g, " ").trim();
  const places = terms.map((term) => plain.toLowerCase().indexOf(term)).filter((at) => at >= 0);
  const from = Math.max(0, Math.min(...places, plain.length) - EXCERPT_CHARS / 4);
  const start = places.length === 0 || from === 0 ? 0 : plain.indexOf(" ", from) + 1;
  const piece = plain.slice(start, start + EXCERPT_CHARS);
  return `${start > 0 ? "… " : ""}${piece}${start + EXCERPT_CHARS < plain.length ? " …" : ""}`;
}
