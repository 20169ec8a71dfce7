import type { Finding } from "../../lib/errors.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import type { RulePath } from "../../normalize/compile.ts";
import { createDiscriminator } from "./discriminators/discriminators.ts";
import { createPagination, type Pagination } from "./pagination/pagination.ts";
import { createPathReader } from "./paths.ts";
import type { Discriminator } from "./position.ts";
import { compileRequest, type RequestTemplate } from "./request-template.ts";
import type { PollingSettings } from "./settings-shape.ts";
import type { TemplateNames, TemplateValue } from "./template-values.ts";

/** A channel's settings, compiled once: all that a poll needs to know. */
export interface Plan {
  readonly settings: PollingSettings;
  readonly request: RequestTemplate;
  readonly discriminator: Discriminator;
  readonly pagination: Pagination;
  readonly itemsPath: RulePath | undefined;
  readonly successPath: RulePath | undefined;
  readonly expiredPath: RulePath | undefined;
  /** True where a walk over the pages begins anew behind each page that has brought something: counting pages is not safe. */
  readonly restartsWalk: boolean;
}

/** Compiles paths and templates; findings name the settings that do not. */
export function compilePlan(settings: PollingSettings): Result<Plan, readonly Finding[]> {
  const { discriminator: by, order, successOn } = settings;
  const paths = createPathReader(settings.pathSyntax);
  const discriminator = createDiscriminator(settings, paths);
  const pagination = createPagination(settings.pagination, paths);
  const itemsPath = paths.ofPage(settings.itemsPath, "itemsPath");
  const successPath = paths.ofPage(successOn.path, "successOn.path");
  const expiredPath =
    by.by === "token" ? paths.ofPage(by.expiredOn.path, "discriminator.expiredOn.path") : undefined;
  const request = compileRequest(settings.request, namesOf(settings));
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
    expiredPath,
    restartsWalk: pagination.counts && usesCursor && order === "ascending" && isOrdered(settings),
  });
}

/** True where what is new is told by where it stands in an order. */
export const isOrdered = ({ discriminator: { by } }: PollingSettings): boolean =>
  by === "timestamp" || by === "sequence";

function namesOf({ discriminator, pagination }: PollingSettings): TemplateNames {
  const names = new Map<string, TemplateValue["kind"]>();
  if (discriminator.by === "timestamp") names.set("cursor", "instant");
  else if (discriminator.by === "sequence" || isTokenValue(discriminator)) names.set("cursor", "text");
  if (pagination !== undefined && pagination.by !== "linkHeader" && pagination.by !== "nextUrlPath") {
    names.set("page", "text");
  }
  return names.set("now", "instant").set("lastPollAt", "instant");
}

const isTokenValue = (discriminator: PollingSettings["discriminator"]): boolean =>
  discriminator.by === "token" && discriminator.as === "value";
