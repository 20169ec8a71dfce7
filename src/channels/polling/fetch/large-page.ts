import type { Values } from "../../../event/values.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { PathBudgetError } from "../../../normalize/paths/path.ts";
import { createPollPathReader, type PathSyntax, type ReadPaths } from "../config/paths.ts";
import { type PageContent, type PageFault, type PageFormat, type PageItem, readContent } from "./page.ts";

/**
 * A request to the thread that parses large pages. The page's bytes are sent only once, together with all paths that the poll may read. The
 * response contains the page's text, the positions of its items and the values of those paths, so that the page is parsed only once.
 */
export interface LargeRequest {
  readonly body: Uint8Array;
  readonly headers: Values;
  readonly syntax: PathSyntax;
  readonly format: Omit<PageFormat, "itemsPath"> & { readonly itemsPath: string | undefined };
  readonly itemPaths: readonly string[];
  readonly pagePaths: readonly string[];
}

export type LargeResult = Result<SentPage, PageFault>;

/**
 * A page in the form in which one thread sends it to another: one array per field. Sending one object per item would take longer than
 * parsing the page.
 */
interface SentPage extends Pick<PageContent, "kind" | "text" | "contentType" | "itemCount"> {
  readonly indexes: Uint32Array;
  /** Start and end offsets of all items. `undefined` if the items are lines or the page is a single item. */
  readonly spans: Uint32Array | undefined;
  readonly lines: readonly string[] | undefined;
  /** Content hashes of all items in one string, with `HASH_CHARS` characters each. */
  readonly hashes: string;
  /** Values that paths select from items, with one column per path. */
  readonly columns: readonly Column[];
  /** Values that paths select from the page, with one value per path. */
  readonly values: readonly unknown[];
}

/**
 * Values of one path in all items. Each distinct text is stored once, so that repeated values do not make the message larger than the page.
 */
interface Column {
  readonly texts: readonly string[];
  /** For each item, the index of its text plus 1. 0 means that the item has no value. */
  readonly places: Uint32Array;
}

const HASH_CHARS = 43;

/** Parses a large page. Runs on the worker thread. */
export function readLargePage(request: LargeRequest): LargeResult {
  const paths = createPollPathReader(request.syntax);
  const { body, format, headers } = request;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const itemsPath = paths.ofItems(format.itemsPath, "itemsPath");
  try {
    const content = readContent({ headers, body: bytes }, { ...format, itemsPath });
    const ofItem = request.itemPaths.map((text) => requirePath(paths.ofItem(text, "")));
    const ofPage = request.pagePaths.map((text) => requirePath(paths.ofPage(text, "")));
    return content.ok ? ok(toSentPage(content.value, { ofItem, ofPage })) : content;
  } catch (error) {
    if (!(error instanceof PathBudgetError)) throw error;
    return err({ code: "path_budget", message: error.message });
  }
}

function requirePath(path: RulePath | undefined): RulePath {
  if (path === undefined) throw new Error("a path compiled in one thread but not in the other");
  return path;
}

function toSentPage(content: PageContent, { ofItem, ofPage }: ReadPaths): SentPage {
  const { contentType, itemCount, items, kind, text } = content;
  const isLines = kind === "ndjson";
  const hasSpans = items.some(({ span }) => span !== undefined);
  return {
    kind,
    // Lines are sent in a separate list, so the whole text is not needed.
    text: isLines ? "" : text,
    contentType,
    itemCount,
    indexes: Uint32Array.from(items, ({ index }) => index),
    spans: hasSpans
      ? Uint32Array.from(items.flatMap(({ span }) => (span ? [span.start, span.end] : [])))
      : undefined,
    lines: isLines ? items.map(({ line = "null" }) => line) : undefined,
    hashes: items.map((item) => item.contentHash()).join(""),
    columns: ofItem.map((path) => toColumn(items, path)),
    values: ofPage.map(content.read),
  };
}

function toColumn(items: readonly PageItem[], path: RulePath): Column {
  const known = new Map<string, number>();
  const placeOf = (text: string): number => {
    const place = known.get(text) ?? known.size + 1;
    known.set(text, place);
    return place;
  };
  const places = Uint32Array.from(items, (item) => {
    const text = item.read(path);
    return text === undefined ? 0 : placeOf(text);
  });
  return { texts: [...known.keys()], places };
}

/**
 * Converts the worker thread's response to a page. Runs on the main thread.
 *
 * @param paths the paths of the request, in the same order
 */
export function toPageContent(sent: SentPage, { ofItem, ofPage }: ReadPaths): PageContent {
  const { contentType, itemCount, kind, text } = sent;
  const columns = new Map(ofItem.map((path, place) => [path, sent.columns[place]]));
  const values = new Map(ofPage.map((path, place) => [path, sent.values[place]]));
  return {
    kind,
    text,
    contentType,
    itemCount,
    items: Array.from(sent.indexes, (index, place) => new SentItem(index, place, sent, columns)),
    read: (path) => (values.has(path) ? values.get(path) : unknown(path)),
  };
}

class SentItem implements PageItem {
  readonly index: number;
  readonly span: PageItem["span"];
  readonly #place: number;
  readonly #page: SentPage;
  readonly #columns: ReadonlyMap<RulePath, Column | undefined>;

  constructor(
    index: number,
    place: number,
    page: SentPage,
    columns: ReadonlyMap<RulePath, Column | undefined>,
  ) {
    this.index = index;
    this.#place = place;
    this.#page = page;
    this.#columns = columns;
    const { spans } = page;
    this.span = spans && { start: spans[2 * place] ?? 0, end: spans[2 * place + 1] ?? 0 };
  }

  get line(): string | undefined {
    return this.#page.lines?.[this.#place];
  }

  read(path: RulePath): string | undefined {
    const column = this.#columns.get(path);
    return column === undefined ? unknown(path) : column.texts[(column.places[this.#place] ?? 0) - 1];
  }

  contentHash(): string {
    return this.#page.hashes.slice(this.#place * HASH_CHARS, (this.#place + 1) * HASH_CHARS);
  }
}

function unknown({ text }: RulePath): never {
  throw new Error(`path ${text} was not evaluated on this page`);
}
