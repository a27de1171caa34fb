// Graphs: work of streams that was captured, and is launched as a whole.

#ifndef SELVEDGE_GRAPH_HPP
#define SELVEDGE_GRAPH_HPP

#include "memory.hpp"

SELVEDGE_BEGIN

/// A captured graph.
class Graph : public Object<Graph, sv_graph> {
public:
    Graph() noexcept = default;

    std::size_t node_count() const { return detail::get<std::size_t>(sv_graph_node_count, handle()); }

    /// Returns a picture in the language of Graphviz.
    std::string dot() const { return detail::text(sv_graph_dot, handle()); }
};

/// Captures the work that a function gives to a stream. The function runs on this thread; its work does not run.
template <class Function>
Graph capture(const Stream &stream, Function &&function)
{
    // A function that throws ends the capture, whose graph is dropped.
    struct End {
        sv_stream stream;
        ~End()
        {
            sv_graph graph = nullptr;
            if (stream != 0 && sv_stream_end_capture(stream, &graph) == SV_OK)
                sv_release(graph);
        }
    };
    detail::call(sv_stream_begin_capture, stream.handle());
    if (detail::has_failed())
        return {};
    End end{stream.handle()};
    function();
    if (detail::has_failed())
        return {};
    end.stream = 0;
    return detail::make<Graph>(sv_stream_end_capture, stream.handle());
}

/// A graph that can be launched.
class ExecutableGraph : public Object<ExecutableGraph, sv_executable_graph> {
public:
    ExecutableGraph() noexcept = default;

    /// Instantiates a graph, which is used up.
    explicit ExecutableGraph(Graph graph)
        : Object(detail::get<sv_executable_graph>(sv_graph_instantiate, graph.handle()))
    {
    }

    void launch(const Stream &stream) const
    {
        detail::call(sv_executable_graph_launch, handle(), stream.handle());
    }
    /// Prepares the first launch.
    void upload(const Stream &stream) const
    {
        detail::call(sv_executable_graph_upload, handle(), stream.handle());
    }

    /// Takes the arguments of another capture of the same operations, which is used up. After
    /// `SV_ERROR_GRAPH_NOT_UPDATABLE` it can still be instantiated.
    void update(const Graph &graph) const { detail::call(sv_executable_graph_update, handle(), graph.handle()); }

    /// Waits for the launches so far, and returns the elements of a pinned buffer that a captured copy uses.
    template <class T>
    Elements<T> host(const PinnedBuffer<T> &pinned) const
    {
        void *data = nullptr;
        std::size_t bytes = 0;
        detail::call(sv_executable_graph_host, handle(), pinned.handle(), &data, &bytes);
        return {static_cast<T *>(data), bytes / sizeof(T)};
    }
};

SELVEDGE_END

#endif
