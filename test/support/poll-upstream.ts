import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Row {
  readonly id: string;
  readonly seq: number;
  readonly atMs: number;
  readonly version: number;
}

export type Paging = "none" | "linkHeader" | "nextUrl" | "cursorToken" | "offset" | "page";

/** How the server presents the table. */
export interface View {
  /** The field that `since` filters by and rows are sorted by. */
  readonly by: "at" | "seq" | "id";
  readonly order: "ascending" | "descending" | "unordered";
  readonly paging: Paging;
  readonly pageSize: number;
  /** Whether the server ignores `since` and returns all rows. */
  readonly showsAll: boolean;
  /** Whether `since` excludes the row at exactly that position. */
  readonly isExclusive: boolean;
  readonly seconds: boolean;
  /** Number of filler characters before the rows of each response. */
  readonly padding: number;
}

export const VIEW: View = {
  by: "at",
  order: "ascending",
  paging: "none",
  pageSize: 3,
  showsAll: false,
  isExclusive: false,
  seconds: false,
  padding: 0,
};

/** A fault that replaces the response to one request or happens before it. */
export type Fault =
  | { readonly kind: "status"; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: "half" }
  /** A truncated body with a matching `Content-Length`. */
  | { readonly kind: "cut" }
  | { readonly kind: "reset" }
  /** The page names itself as the next page. Has no effect on a first page that no token names. */
  | { readonly kind: "repeat" }
  | { readonly kind: "do"; readonly change: (upstream: PollUpstream) => void };

/**
 * A server with a table of rows and its own clock. `/rows` returns the rows in pages, `/changes` all changes since a token, and
 * `/document` all rows as one document with an ETag. Each request consumes one entry of `faults`; `undefined` gives a normal response.
 */
export class PollUpstream implements AsyncDisposable {
  readonly rows = new Map<string, Row>();
  /** Every insert and update, in order. A token of `/changes` is an index into this array. */
  readonly changes: Row[] = [];
  readonly requests: { readonly url: string; readonly headers: IncomingMessage["headers"] }[] = [];
  view: View = VIEW;
  faults: (Fault | undefined)[] = [];
  nowMs = Date.UTC(2026, 0, 1);
  /** The server rejects tokens of `/changes` below this value with 410. */
  oldestToken = 0;
  readonly #server = createServer((request, response) => this.#handle(request, response));
  #seq = 0;

  static async start(): Promise<PollUpstream> {
    const upstream = new PollUpstream();
    upstream.#server.listen(0, "127.0.0.1");
    await once(upstream.#server, "listening");
    return upstream;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  clear(view: Partial<View> = {}): void {
    this.rows.clear();
    this.changes.length = 0;
    this.requests.length = 0;
    this.faults = [];
    this.view = { ...VIEW, ...view };
    this.oldestToken = 0;
    this.#seq = 0;
  }

  insert({ atMs = this.nowMs, seq }: { readonly atMs?: number; readonly seq?: number } = {}): Row {
    const next = seq ?? ++this.#seq;
    this.#seq = Math.max(this.#seq, next);
    return this.#put({ id: `r${String(next).padStart(5, "0")}`, seq: next, atMs, version: 1 });
  }

  /** Returns a sequence number that no row has yet. */
  reserve(): number {
    return ++this.#seq;
  }

  /** Stores a new version of the row. In an order by time, the row moves to its new place. */
  update(id: string): void {
    const row = this.rows.get(id);
    if (row) this.#put({ ...row, version: row.version + 1, atMs: this.nowMs });
  }

  delete(id: string): void {
    this.rows.delete(id);
  }

  #put(row: Row): Row {
    this.rows.set(row.id, row);
    this.changes.push(row);
    return row;
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", this.origin);
    this.requests.push({ url: url.href, headers: request.headers });
    const fault = this.faults.shift();
    if (fault?.kind === "do") fault.change(this);
    if (fault?.kind === "reset") {
      request.socket.destroy();
      return;
    }
    if (fault?.kind === "status") {
      response.writeHead(fault.status, fault.headers).end("{}");
      return;
    }
    if (url.pathname === "/changes") this.#answerChanges(url, response, fault);
    else if (url.pathname === "/document") this.#answerDocument(request, response, fault);
    else this.#answerRows(url, response, fault);
  }

  #answerRows(url: URL, response: ServerResponse, fault: Fault | undefined): void {
    const { paging, pageSize } = this.view;
    const all = this.#shown(url.searchParams.get("since"));
    const token = url.searchParams.get("token");
    const from =
      paging === "offset"
        ? Number(url.searchParams.get("offset") ?? 0)
        : paging === "page"
          ? (Number(url.searchParams.get("page") ?? 1) - 1) * pageSize
          : all.findIndex((row) => token === null || this.#isBehind(row, token));
    const start = from < 0 ? all.length : from;
    const rows = paging === "none" ? all : all.slice(start, start + pageSize);
    const last = rows.at(-1);
    const hasMore = last !== undefined && start + rows.length < all.length;
    const namesItself = fault?.kind === "repeat" && (token !== null || paging !== "cursorToken");
    const next = namesItself ? token : hasMore ? this.#tokenOf(last) : undefined;
    const page: Record<string, unknown> = { total: all.length, rows: rows.map((row) => this.#render(row)) };
    const headers: Record<string, string> = {};
    if (next !== undefined) {
      const link = new URL(url);
      if (next !== null) link.searchParams.set("token", next);
      if (paging === "linkHeader") headers.link = `<${link.pathname}${link.search}>; rel="next"`;
      if (paging === "nextUrl") page.next = link.href;
      if (paging === "cursorToken") page.next = next;
    }
    this.#send(response, page, headers, fault);
  }

  #answerChanges(url: URL, response: ServerResponse, fault: Fault | undefined): void {
    const [since = 0, until = this.changes.length] = (url.searchParams.get("token") ?? "0")
      .split("-")
      .map(Number);
    if (url.searchParams.has("token") && since < this.oldestToken) {
      response.writeHead(410).end("{}");
      return;
    }
    const end = Math.min(until, since + this.view.pageSize);
    const rows = this.changes.slice(since, end).map((row) => this.#render(row));
    const isLast = end === until;
    const next = fault?.kind === "repeat" ? `${since}-${until}` : `${end}-${until}`;
    const page = isLast && fault?.kind !== "repeat" ? { rows, delta: String(until) } : { rows, next };
    this.#send(response, page, {}, fault);
  }

  #answerDocument(request: IncomingMessage, response: ServerResponse, fault: Fault | undefined): void {
    const rows = [...this.rows.values()].map((row) => this.#render(row));
    const etag = `"${createHash("sha256").update(JSON.stringify(rows)).digest("hex").slice(0, 16)}"`;
    if (request.headers["if-none-match"] === etag) response.writeHead(304, { etag }).end();
    else this.#send(response, { rows }, { etag }, fault);
  }

  #send(
    response: ServerResponse,
    page: Readonly<Record<string, unknown>>,
    headers: Readonly<Record<string, string>>,
    fault: Fault | undefined,
  ): void {
    const { padding } = this.view;
    const text = JSON.stringify(padding > 0 ? { padding: "x".repeat(padding), ...page } : page);
    response.setHeader("content-type", "application/json");
    response.setHeader("set-cookie", "session=very-secret");
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (fault?.kind === "half") {
      response.setHeader("content-length", text.length);
      response.write(text.slice(0, text.length / 2), () => response.destroy());
    } else response.end(fault?.kind === "cut" ? text.slice(0, text.length / 2) : text);
  }

  #shown(since: string | null): Row[] {
    const { by, isExclusive, order, showsAll } = this.view;
    const floor = since === null || showsAll ? Number.NEGATIVE_INFINITY : this.#placeOf(since);
    const rows = [...this.rows.values()].filter((row) => {
      const place = this.#floored(row);
      return by === "id" || (isExclusive ? place > floor : place >= floor);
    });
    const direction = order === "descending" ? -1 : 1;
    return rows.sort((a, b) => direction * (this.#tokenOf(a) < this.#tokenOf(b) ? -1 : 1));
  }

  #placeOf(since: string): number {
    if (this.view.by === "seq") return Number(since);
    return this.view.seconds ? Number(since) : Date.parse(since);
  }

  #floored({ atMs, seq }: Row): number {
    if (this.view.by === "seq") return seq;
    return this.view.seconds ? Math.floor(atMs / 1000) : atMs;
  }

  /** Returns the row's sort key. The token of a page is the sort key of its last row. */
  #tokenOf(row: Row): string {
    if (this.view.order === "unordered") {
      return createHash("sha256").update(row.id).digest("hex").slice(0, 16);
    }
    const place = this.view.by === "at" ? row.atMs : row.seq;
    return `${String(place).padStart(16, "0")}${row.id}`;
  }

  #isBehind(row: Row, token: string): boolean {
    const own = this.#tokenOf(row);
    return this.view.order === "descending" ? own < token : own > token;
  }

  #render({ atMs, id, seq, version }: Row): unknown {
    const at = this.view.seconds ? Math.floor(atMs / 1000) : new Date(atMs).toISOString();
    return { id, seq, at, version };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
