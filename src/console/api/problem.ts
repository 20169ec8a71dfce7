export interface ProblemDetail {
  readonly path: string;
  readonly message: string;
}

/** An error response of the API, or the failure to reach the API. */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  /** HTTP status of the response, or 0 if the gateway did not respond. */
  readonly status: number;
  readonly code: string;
  readonly details: readonly ProblemDetail[];
  /** Id of the request in the gateway's log. */
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
    return new ApiProblem("The gateway does not respond.", { status: 0, code: "unreachable", cause });
  }
}

export async function parseProblem(response: Response): Promise<ApiProblem> {
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const body: unknown = await response.json().catch(() => undefined);
  const { code, message, details } = isRecord(body) ? body : {};
  return new ApiProblem(
    typeof message === "string" ? message : `The gateway responded with status ${response.status}.`,
    {
      status: response.status,
      code: typeof code === "string" ? code : "unknown",
      details: Array.isArray(details) ? details.filter(isDetail) : [],
      requestId,
    },
  );
}

export const toProblem = (error: unknown): ApiProblem =>
  error instanceof ApiProblem
    ? error
    : new ApiProblem("The page failed because of an internal error.", {
        status: 0,
        code: "page_failed",
        cause: error,
      });

export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === "AbortError";

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isDetail = (value: unknown): value is ProblemDetail =>
  isRecord(value) && typeof value.path === "string" && typeof value.message === "string";
