// The function that link_main.cu calls.
extern "C" __device__ float transform(float value) { return 3.0f * value + 1.0f; }
