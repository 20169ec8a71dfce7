export interface ProblemDetail {
  readonly path: string;
  readonly message: string;
}

/** What the API answered instead of a success, or that it did not answer. */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  /** 0: there was no answer. */
  readonly status: number;
  readonly code: string;
  readonly details: readonly ProblemDetail[];
  /** By which the gateway's log knows the request. */
  readonly requestId: string | undefined;

  constructor(
    message: string,
    facts: {
      readonly status: number;
      readonly code: string;
      readonly details?: readonly ProblemDetail[];
      readonly requestId?: string | undefined;
      readonly cause?: unknown;
    },
  ) {
    super(message, { cause: facts.cause });
    this.status = facts.status;
    this.code = facts.code;
    this.details = facts.details ?? [];
    this.requestId = facts.requestId;
  }

  static unreachable(cause: unknown): ApiProblem {
    return new ApiProblem("The gateway gives no answer.", { status: 0, code: "unreachable", cause });
  }
}

export async function problemOf(response: Response): Promise<ApiProblem> {
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const body: unknown = await response.json().catch(() => undefined);
  const { code, message, details } = isRecord(body) ? body : {};
  return new ApiProblem(typeof message === "string" ? message : `The gateway answered ${response.status}.`, {
    status: response.status,
    code: typeof code === "string" ? code : "unknown",
    details: Array.isArray(details) ? details.filter(isDetail) : [],
    requestId,
  });
}

/** Any failure as one that can be shown. */
export const toProblem = (error: unknown): ApiProblem =>
  error instanceof ApiProblem
    ? error
    : new ApiProblem("The page has failed.", { status: 0, code: "page_failed", cause: error });

export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === "AbortError";

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isDetail = (value: unknown): value is ProblemDetail =>
  isRecord(value) && typeof value.path === "string" && typeof value.message === "string";
