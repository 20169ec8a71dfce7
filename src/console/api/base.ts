/** Base path of the API. */
export const API_BASE = "/v1";
