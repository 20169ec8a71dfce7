/** Program of the worker thread that processes large deliveries. `startNormalizeQueue` starts it. */
import { channelKinds } from "../channels/kinds.ts";
import { serveNormalizeJobs } from "../ingest/worker/normalize-worker.ts";

serveNormalizeJobs(channelKinds);
