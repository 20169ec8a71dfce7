import { err, ok, type Result } from "../../../lib/result.ts";
import type { OutboundResponse } from "../../../net/outbound.ts";
import { isLarge } from "../../../normalize/large.ts";
import { PathBudgetError } from "../../../normalize/paths/path.ts";
import type { ReadInWorker } from "../../kind.ts";
import type { SourceRun } from "../../source.ts";
import type { ReadPaths } from "../config/paths.ts";
import type { Plan } from "../config/plan.ts";
import { findsSameItems } from "./finds-same-items.ts";
import { type LargeRequest, type LargeResult, toPageContent } from "./large-page.ts";
import { type Page, type PageContent, type PageFault, readContent, resolveContentType } from "./page.ts";
import { removeQueryParameters } from "./secrets.ts";

export interface PageReaderDeps {
  readonly readInWorker: ReadInWorker;
}

/** Parses the pages of a poll. Large pages are parsed on a worker thread, with the same result. */
export interface PageReader {
  /**
   * Parses a response as a page.
   * @param secretQuery names of query parameters that contain secrets
   * @throws PathBudgetError, which reading values from the returned page can also throw
   * @throws UnavailableError
   */
  readonly page: (
    answer: OutboundResponse,
    secretQuery: readonly string[],
  ) => Promise<Result<Page, PageFault>>;
  /** Parses a response that need not be a page, such as an error response, so the result has no items. Throws the same errors as `page`. */
  readonly document: (answer: OutboundResponse) => Promise<Result<PageContent, PageFault>>;
  /**
   * Returns whether `itemsPath` finds exactly the given items in the text. Returns an error if the check takes too much CPU time.
   * @throws UnavailableError
   */
  readonly findsSameItems: (text: string, items: readonly string[]) => Promise<Result<boolean, PageFault>>;
}

export function createPageReader(
  { readInWorker }: PageReaderDeps,
  { plan, run }: { readonly plan: Plan; readonly run: Pick<SourceRun, "channel"> },
): PageReader {
  const { itemsPath, reads, config } = plan;
  const { decode, itemsOptional, pathSyntax: syntax } = config;

  async function ask(request: LargeRequest): Promise<Result<LargeResult, PageFault>> {
    const answer = await readInWorker(request, run.channel.identity.organizationId);
    if (!answer.ok) return err({ code: "invalid_body", message: TOO_COSTLY });
    const read = answer.value as LargeResult;
    if (read.kind === "budget") throw new PathBudgetError(read.message);
    return ok(read);
  }

  async function read(
    { body, headers }: OutboundResponse,
    path: typeof itemsPath,
    paths: ReadPaths,
  ): Promise<Result<PageContent, PageFault>> {
    if (!isLarge(body.length, resolveContentType(headers, decode)))
      return readContent({ body, headers }, { decode, itemsOptional, itemsPath: path });
    const answer = await ask({
      kind: "page",
      body,
      headers,
      syntax,
      format: { decode, itemsOptional, itemsPath: path?.text },
      itemPaths: paths.ofItem.map(({ text }) => text),
      pagePaths: paths.ofPage.map(({ text }) => text),
    });
    if (!answer.ok) return answer;
    if (answer.value.kind !== "page") throw new Error(`expected a page, received ${answer.value.kind}`);
    const { page } = answer.value;
    return page.ok ? ok(toPageContent(page.value, paths)) : page;
  }

  return {
    async page(answer, secretQuery) {
      const content = await read(answer, itemsPath, reads);
      if (!content.ok) return content;
      const addressOf: Page["addressOf"] = (text) =>
        removeQueryParameters(URL.parse(text, answer.url), secretQuery);
      return ok({ ...content.value, headers: answer.headers, addressOf });
    },
    document(answer) {
      const { expiredOn } = plan.discriminator;
      return read(answer, undefined, { ofItem: [], ofPage: expiredOn?.path ? [expiredOn.path] : [] });
    },
    async findsSameItems(text, items) {
      if (itemsPath?.path.kind !== "query") return ok(true);
      if (!isLarge(text.length, undefined)) return ok(findsSameItems(text, items, itemsPath));
      const answer = await ask({ kind: "findsSameItems", text, items, syntax, itemsPath: itemsPath.text });
      if (!answer.ok) return answer;
      if (answer.value.kind !== "findsSameItems")
        throw new Error(`expected findsSameItems, received ${answer.value.kind}`);
      return ok(answer.value.isSame);
    },
  };
}

const TOO_COSTLY = "The response cannot be parsed, because parsing takes too much time or memory";
