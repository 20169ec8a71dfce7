import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { createItemKey } from "../cursor/seen-keys.ts";
import type { CompiledDiscriminator } from "../discriminators/discriminator.ts";
import { getDiscriminator } from "../discriminators/discriminators.ts";
import { createPagination, type Pagination } from "../pagination/pagination.ts";
import { compileRequest, type RequestTemplate } from "../request/request-template.ts";
import type { TemplateNames, TemplateValue } from "../request/template-values.ts";
import type { PollingConfig } from "./config-shape.ts";
import { createPollPathReader, type ReadPaths } from "./paths.ts";
import { compileReconcile, type ReconcilePlan } from "./reconcile.ts";

export interface Plan {
  readonly config: PollingConfig;
  readonly request: RequestTemplate;
  readonly discriminator: CompiledDiscriminator;
  readonly pagination: Pagination;
  readonly itemsPath: RulePath | undefined;
  readonly successPath: RulePath | undefined;
  readonly reads: ReadPaths;
  /** `undefined` if the channel publishes its own events. */
  readonly reconcile: ReconcilePlan | undefined;
  /**
   * Whether reading starts over from the first page after a page with new items. Needed if new items move the cursor, because the same page
   * number then refers to other items.
   */
  readonly restartsWalk: boolean;
}

/** Compiles the settings of a polling channel. Each error names the invalid setting. */
export function compilePlan(config: PollingConfig): Result<Plan, readonly Finding[]> {
  const { order, startAt, successOn } = config;
  const paths = createPollPathReader(config.pathSyntax);
  const itemId = paths.ofItem(config.itemId, "itemId");
  const versionPath = paths.ofItem(config.versionPath, "versionPath");
  const itemKey = createItemKey(itemId, versionPath);
  const reconcileFindings: Finding[] = [];
  const reconcile = compileReconcile(config, config.pathSyntax, reconcileFindings);
  const discriminator = getDiscriminator(config.discriminator.by).create(config.discriminator, {
    paths,
    itemId,
    versionPath,
    itemKey,
    order,
    startAt,
    settleMs: reconcile?.settleMs ?? 0,
  });
  const pagination = createPagination(config.pagination, paths);
  const itemsPath = paths.ofItems(config.itemsPath, "itemsPath");
  const successPath = paths.ofPage(successOn.path, "successOn.path");
  const request = compileRequest(config.request, listPlaceholders(config));
  const findings = [
    ...paths.findings,
    ...reconcileFindings,
    ...(request.ok ? [] : request.error.map(({ path, message }) => ({ path: `request.${path}`, message }))),
  ];
  if (findings.length > 0 || discriminator === undefined || !request.ok) return err(findings);
  const usesCursor = request.value.names.has("cursor");
  return ok({
    config,
    request: request.value,
    discriminator,
    pagination,
    itemsPath,
    successPath,
    reads: paths.compiled(),
    reconcile,
    restartsWalk:
      pagination.isCounted && usesCursor && order === "ascending" && discriminator.isOrdered === true,
  });
}

function listPlaceholders({ discriminator, pagination }: PollingConfig): TemplateNames {
  const names = new Map<string, TemplateValue["kind"]>();
  const cursorKind = getDiscriminator(discriminator.by).cursorKind(discriminator);
  if (cursorKind !== undefined) names.set("cursor", cursorKind);
  if (pagination !== undefined && pagination.by !== "linkHeader" && pagination.by !== "nextUrlPath") {
    names.set("page", "text");
  }
  return names.set("now", "instant").set("lastPollAt", "instant");
}
