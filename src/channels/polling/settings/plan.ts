import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { createItemKey } from "../cursor/seen-keys.ts";
import type { CompiledDiscriminator } from "../discriminators/discriminator.ts";
import { getDiscriminator } from "../discriminators/discriminators.ts";
import { createPagination, type Pagination } from "../pagination/pagination.ts";
import { compileRequest, type RequestTemplate } from "../request/request-template.ts";
import type { TemplateNames, TemplateValue } from "../request/template-values.ts";
import { createPollPathReader, type ReadPaths } from "./paths.ts";
import type { PollingSettings } from "./settings-shape.ts";

export interface Plan {
  readonly settings: PollingSettings;
  readonly request: RequestTemplate;
  readonly discriminator: CompiledDiscriminator;
  readonly pagination: Pagination;
  readonly itemsPath: RulePath | undefined;
  readonly successPath: RulePath | undefined;
  readonly reads: ReadPaths;
  /**
   * Whether reading starts over from the first page after a page with new items. Needed if new items move the cursor, because the same page
   * number then refers to other items.
   */
  readonly restartsWalk: boolean;
}

/** Compiles the settings of a polling channel. Each error names the invalid setting. */
export function compilePlan(settings: PollingSettings): Result<Plan, readonly Finding[]> {
  const { order, startAt, successOn } = settings;
  const paths = createPollPathReader(settings.pathSyntax);
  const itemId = paths.ofItem(settings.itemId, "itemId");
  const versionPath = paths.ofItem(settings.versionPath, "versionPath");
  const itemKey = createItemKey(itemId, versionPath);
  const discriminator = getDiscriminator(settings.discriminator.by).create(settings.discriminator, {
    paths,
    itemId,
    versionPath,
    itemKey,
    order,
    startAt,
  });
  const pagination = createPagination(settings.pagination, paths);
  const itemsPath = paths.ofItems(settings.itemsPath, "itemsPath");
  const successPath = paths.ofPage(successOn.path, "successOn.path");
  const request = compileRequest(settings.request, listPlaceholders(settings));
  const findings = [
    ...paths.findings,
    ...(request.ok ? [] : request.error.map(({ path, message }) => ({ path: `request.${path}`, message }))),
  ];
  if (findings.length > 0 || discriminator === undefined || !request.ok) return err(findings);
  const usesCursor = request.value.names.has("cursor");
  return ok({
    settings,
    request: request.value,
    discriminator,
    pagination,
    itemsPath,
    successPath,
    reads: paths.compiled(),
    restartsWalk:
      pagination.isCounted && usesCursor && order === "ascending" && discriminator.isOrdered === true,
  });
}

function listPlaceholders({ discriminator, pagination }: PollingSettings): TemplateNames {
  const names = new Map<string, TemplateValue["kind"]>();
  const cursorKind = getDiscriminator(discriminator.by).cursorKind(discriminator);
  if (cursorKind !== undefined) names.set("cursor", cursorKind);
  if (pagination !== undefined && pagination.by !== "linkHeader" && pagination.by !== "nextUrlPath") {
    names.set("page", "text");
  }
  return names.set("now", "instant").set("lastPollAt", "instant");
}
