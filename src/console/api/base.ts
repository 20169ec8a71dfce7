export const API_BASE = "/v1";
