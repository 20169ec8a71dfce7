import { err, ok, type Result } from "../../../lib/result.ts";
import type { AuthorizedRequest } from "../../../net/credentials.ts";
import type { OutboundResponse } from "../../../net/outbound.ts";
import { isLarge } from "../../../normalize/body/bodies.ts";
import type { ReadInWorker } from "../../kind.ts";
import type { SourceRun } from "../../source.ts";
import type { ReadPaths } from "../config/paths.ts";
import type { Plan } from "../config/plan.ts";
import { type LargeRequest, type LargeResult, toPageContent } from "./large-page.ts";
import {
  getItemTexts,
  type Page,
  type PageContent,
  type PageFault,
  type PageFormat,
  readContent,
  resolveContentType,
} from "./page.ts";
import { removeCredentials } from "./secrets.ts";

export interface PageReaderDeps {
  readonly readInWorker: ReadInWorker;
}

/** Parses the pages of a poll. Large pages are parsed on a worker thread, with the same result. */
export interface PageReader {
  /**
   * Parses a response as a page.
   * @param sent the request, whose credentials are removed from addresses in the page
   * @throws PathBudgetError, which reading values from the returned page can also throw
   * @throws UnavailableError
   */
  readonly page: (
    answer: OutboundResponse,
    sent: Pick<AuthorizedRequest, "secretQuery" | "secretPath">,
  ) => Promise<Result<Page, PageFault>>;
  /** Parses a response that need not be a page, such as an error response, so the result has no items. Throws the same errors as `page`. */
  readonly document: (answer: OutboundResponse) => Promise<Result<PageContent, PageFault>>;
  /**
   * Returns whether `itemsPath` finds exactly the given items in the JSON text. Throws the same errors as `page`.
   */
  readonly findsSameItems: (text: string, items: readonly string[]) => Promise<Result<boolean, PageFault>>;
}

export function createPageReader(
  { readInWorker }: PageReaderDeps,
  { plan, run }: { readonly plan: Plan; readonly run: Pick<SourceRun, "channel"> },
): PageReader {
  const { itemsPath, reads, config } = plan;
  const { decode, itemsOptional, pathSyntax: syntax } = config;

  async function read(
    { body, headers }: Pick<OutboundResponse, "body" | "headers">,
    format: PageFormat,
    paths: ReadPaths,
  ): Promise<Result<PageContent, PageFault>> {
    if (!isLarge(body.length, resolveContentType(headers, format.decode)))
      return readContent({ body, headers }, format);
    const request: LargeRequest = {
      body,
      headers,
      syntax,
      format: { ...format, itemsPath: format.itemsPath?.text },
      itemPaths: paths.ofItem.map(({ text }) => text),
      pagePaths: paths.ofPage.map(({ text }) => text),
    };
    const answer = await readInWorker(request, run.channel.identity.organizationId);
    if (!answer.ok) return err({ code: "invalid_body", message: TOO_COSTLY });
    const sent = answer.value as LargeResult;
    return sent.ok ? ok(toPageContent(sent.value, paths)) : sent;
  }

  return {
    async page(answer, sent) {
      const content = await read(answer, { decode, itemsOptional, itemsPath }, reads);
      if (!content.ok) return content;
      const addressOf: Page["addressOf"] = (text) => removeCredentials(URL.parse(text, answer.url), sent);
      return ok({ ...content.value, headers: answer.headers, addressOf });
    },
    document(answer) {
      const { expiredOn } = plan.discriminator;
      const format = { decode, itemsOptional, itemsPath: undefined };
      return read(answer, format, { ofItem: [], ofPage: expiredOn?.path ? [expiredOn.path] : [] });
    },
    async findsSameItems(text, items) {
      if (itemsPath?.path.kind !== "query") return ok(true);
      const format = { decode: "json", itemsOptional, itemsPath } as const;
      const again = await read({ body: Buffer.from(text), headers: {} }, format, { ofItem: [], ofPage: [] });
      if (!again.ok) return again;
      const found = getItemTexts(again.value, again.value.items);
      return ok(found.length === items.length && found.every((each, index) => each === items[index]));
    },
  };
}

const TOO_COSTLY = "The response cannot be parsed, because parsing takes too much time or memory";
