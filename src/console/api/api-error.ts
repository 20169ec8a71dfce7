export interface ErrorDetail {
  readonly path: string;
  readonly message: string;
}

/** An error response of the API, or a failed attempt to reach the API. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status of the response, or 0 if the gateway did not respond. */
  readonly status: number;
  readonly code: string;
  readonly details: readonly ErrorDetail[];
  /** Id of the request in the gateway's log. */
  readonly requestId: string | undefined;

  constructor(
    message: string,
    facts: {
      readonly status: number;
      readonly code: string;
      readonly details?: readonly ErrorDetail[];
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

  static unreachable(cause: unknown): ApiError {
    return new ApiError("The gateway does not respond.", { status: 0, code: "unreachable", cause });
  }
}

export async function parseApiError(response: Response): Promise<ApiError> {
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const body: unknown = await response.json().catch(() => undefined);
  const { code, message, details } = isRecord(body) ? body : {};
  return new ApiError(
    typeof message === "string" ? message : `The gateway responded with status ${response.status}.`,
    {
      status: response.status,
      code: typeof code === "string" ? code : "unknown",
      details: Array.isArray(details) ? details.filter(isDetail) : [],
      requestId,
    },
  );
}

export const toApiError = (error: unknown): ApiError =>
  error instanceof ApiError
    ? error
    : new ApiError("The page failed because of an internal error.", {
        status: 0,
        code: "page_failed",
        cause: error,
      });

export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === "AbortError";

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isDetail = (value: unknown): value is ErrorDetail =>
  isRecord(value) && typeof value.path === "string" && typeof value.message === "string";
