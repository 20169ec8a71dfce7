import type { IncomingMessage } from "node:http";
import { ApiError } from "../../http/problem.ts";

/** What the bodies that are being read may hold together: senders that are slow on purpose must not fill the memory. */
export interface BodyBudget {
  bytesLeft: number;
}

/** A body of no more comes in one chunk or two, and is let through also when the budget is used up. */
const FREE_BYTES = 64 * 1024;

/**
 * Reads a body while what has come of it is charged to the budget.
 *
 * @throws ApiError 503 when the budget is used up.
 */
export function readWithin<T>(
  budget: BodyBudget,
  request: IncomingMessage,
  read: () => Promise<T>,
): Promise<T> {
  const length = Number(request.headers["content-length"] ?? Number.POSITIVE_INFINITY);
  return length <= FREE_BYTES ? read() : readCharged(budget, request, read);
}

async function readCharged<T>(
  budget: BodyBudget,
  request: IncomingMessage,
  read: () => Promise<T>,
): Promise<T> {
  const { promise: usedUp, reject } = Promise.withResolvers<never>();
  let received = 0;
  let charged = 0;
  const onData = (chunk: Buffer): void => {
    received += chunk.length;
    if (received <= FREE_BYTES) return;
    charged += chunk.length;
    budget.bytesLeft -= chunk.length;
    if (budget.bytesLeft >= 0) return;
    request.pause();
    reject(
      new ApiError("unavailable", "Inlet cannot answer this just now; try again.", {
        // What has come of the body is let go with the connection only.
        headers: { "retry-after": "1", connection: "close" },
        cause: new Error("the bodies that are being read hold too much"),
      }),
    );
  };
  const body = read();
  request.on("data", onData);
  try {
    return await Promise.race([body, usedUp]);
  } finally {
    request.off("data", onData);
    budget.bytesLeft += charged;
  }
}
