/*
 * waits_beside_captures.cu: a wait for an event that ends too early, with the bare driver alone.
 *
 * Eight threads share four streams. Each writes its own buffer on one stream, records an event there, makes another stream
 * wait for it, copies the buffer to the host on that one, and compares. Once in sixteen turns the write is a graph that the
 * thread has just captured on a stream of its own, instantiated, and destroys afterwards. The program is ordered by the
 * rules of the driver's documentation, and nothing of this library is in it.
 *
 *   nvcc -O2 -std=c++17 -arch=sm_90 waits_beside_captures.cu -lcuda -o waits && ./waits MODE SECONDS
 *
 * On an H200 with driver 580.159.04 some copies bring what the buffer held before the write, always after a plain kernel:
 *
 *   mode 20  everything as above                                          11 of 657 765
 *   mode 10  captures that are thrown away, no graph is launched           0 of 766 208
 *   mode 11  launches of graphs from before                                0 of 894 435
 *   mode 12  graphs are instantiated and destroyed, none launched          0 of 670 428
 *   mode 13  as 20, no capture while a thread records and waits            0 of 712 712
 *   mode 14  as 20, no graph is launched while a thread records and waits  0 of 643 303
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <thread>
#include <vector>
#include <mutex>
#include <shared_mutex>
#include <atomic>
#include <random>
__global__ void slow_set(unsigned*o,unsigned n,unsigned v,unsigned long long ns){ unsigned long long t,s; asm volatile("mov.u64 %0,%globaltimer;":"=l"(s)); do{asm volatile("mov.u64 %0,%globaltimer;":"=l"(t));}while(t-s<ns); unsigned i=blockIdx.x*blockDim.x+threadIdx.x; if(i<n) o[i]=v; }
std::mutex M; std::vector<CUevent> P; std::atomic<long> ops{0}, bad{0}, badg{0}, caps{0}; std::shared_mutex R;
int mode=0;
CUevent take(){ CUevent e=0; { std::lock_guard<std::mutex> g(M); if(!P.empty()){ e=P.back(); P.pop_back(); } } if(!e) cuEventCreate(&e,CU_EVENT_DISABLE_TIMING); return e; }
void put(CUevent e){ std::lock_guard<std::mutex> g(M); P.push_back(e); }
int main(int c,char**v){ mode=atoi(v[1]); int sec=atoi(v[2]); cuInit(0); CUdevice d; cuDeviceGet(&d,0); CUcontext x; cuDevicePrimaryCtxRetain(&x,d); cuCtxSetCurrent(x); const int NS=4,NT=8; CUstream S[NS]; for(auto&s:S) cuStreamCreate(&s,1); std::atomic<bool> stop{false}; std::vector<std::thread> T;
 slow_set<<<1,1>>>(0,0,0,0); cudaDeviceSynchronize();
 for(int t=0;t<NT;t++) T.emplace_back([&,t]{ cuCtxSetCurrent(x); std::mt19937 r(t); unsigned n=3000; CUstream own; cuStreamCreate(&own,1); CUdeviceptr b; cuMemAlloc(&b,n*4); std::vector<unsigned> h(n); CUgraph pg; CUgraphExec pre; { std::lock_guard<std::mutex> l(M); cuStreamBeginCapture(own,CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); slow_set<<<(n+255)/256,256,0,own>>>((unsigned*)b,n,777u,20000ull); cuStreamEndCapture(own,&pg); cuGraphInstantiateWithFlags(&pre,pg,0);} while(!stop){ unsigned val=r()>>8; int a=r()%NS, w=r()%NS; if(a==w) continue; unsigned long long ns = r()%8==0 ? r()%50000 : 0; unsigned kind=r()%16;
   bool graph=false;
   auto order=[&](){ CUevent e=take(); if(mode==13||mode==14){ std::shared_lock<std::shared_mutex> l(R); cuEventRecord(e,S[a]); cuStreamWaitEvent(S[w],e,0);} else { cuEventRecord(e,S[a]); cuStreamWaitEvent(S[w],e,0);} put(e); };
   auto capture=[&](CUgraph*g){ std::unique_lock<std::shared_mutex> l(R,std::defer_lock); if(mode==13) l.lock(); cuStreamBeginCapture(own,CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); slow_set<<<(n+255)/256,256,0,own>>>((unsigned*)b,n,val,ns); cuStreamEndCapture(own,g); };
   if(kind==0){ CUgraph g; CUgraphExec ex; caps++;
     if(mode==10){ capture(&g); cuGraphDestroy(g); slow_set<<<(n+255)/256,256,0,S[a]>>>((unsigned*)b,n,val,ns); }
     else if(mode==11){ graph=true; val=777; cuGraphLaunch(pre,S[a]); }
     else if(mode==12){ cuGraphInstantiateWithFlags(&ex,pg,0); cuGraphExecDestroy(ex); slow_set<<<(n+255)/256,256,0,S[a]>>>((unsigned*)b,n,val,ns); }
     else if(mode==14){ graph=true; capture(&g); cuGraphInstantiateWithFlags(&ex,g,0); { std::unique_lock<std::shared_mutex> l(R); cuGraphLaunch(ex,S[a]); } }
     else { graph=true; capture(&g); cuGraphInstantiateWithFlags(&ex,g,0); cuGraphLaunch(ex,S[a]); }
     order(); cuMemcpyDtoHAsync(h.data(),b,n*4,S[w]); cuStreamSynchronize(S[w]); if(mode>=13){ cuGraphExecDestroy(ex); cuGraphDestroy(g);} }
   else { slow_set<<<(n+255)/256,256,0,S[a]>>>((unsigned*)b,n,val,ns); order(); cuMemcpyDtoHAsync(h.data(),b,n*4,S[w]); cuStreamSynchronize(S[w]); }
   ops++; for(unsigned i=0;i<n;i++) if(h[i]!=val){ (graph?badg:bad)++; break; } 
   CUevent f=take(); cuEventRecord(f,S[w]); cuStreamWaitEvent(S[a],f,0); put(f); } });
 std::this_thread::sleep_for(std::chrono::seconds(sec)); stop=true; for(auto&t:T) t.join(); printf("mode %d: %ld operations, %ld captures, %ld wrong after a kernel, %ld after a graph, last error %d\n",mode,ops.load(),caps.load(),bad.load(),badg.load(),(int)cudaGetLastError()); }
