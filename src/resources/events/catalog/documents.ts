import { conflict } from "../../../http/errors.ts";
import { createWorkerQueue, type WorkerQueue } from "../../../lib/worker-queue.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import type { DocumentAnswer, DocumentRequest } from "./documents-worker.ts";

const MAX_CPU_MS = 5_000;

/**
 * Creates documents about the event types of an app in a worker thread, because their schemas are untrusted and can take a second. The
 * thread starts with the first document, and serves organizations round-robin.
 *
 * @param stopping returns a signal that aborts when the gateway shuts down
 */
export function createDocuments(stopping: () => AbortSignal) {
  let queue: WorkerQueue<DocumentRequest, DocumentAnswer> | undefined;

  function openQueue() {
    const opened = createWorkerQueue<DocumentRequest, DocumentAnswer>({
      program: new URL("./documents-worker.ts", import.meta.url),
      name: "event documents",
      maxCpuMs: MAX_CPU_MS,
      maxQueuedPerLane: 8,
      maxHeapMiB: 256,
    });
    stopping().addEventListener("abort", () => void opened[Symbol.asyncDispose](), { once: true });
    return opened;
  }

  return {
    /** Returns the text of a document. @throws ApiError 409 if it is too long or takes too long; UnavailableError */
    async write(request: DocumentRequest, { organizationId }: AppScope): Promise<string> {
      queue ??= openQueue();
      const answer = await queue.run(request, { lane: organizationId, signal: stopping() });
      if (answer.kind === "written") return answer.text;
      const problem = answer.kind === "tooLong" ? "would be too long" : "takes too long to create";
      throw conflict(`The document ${problem}. Select a channel with the parameter \`channel\`.`);
    },
  };
}
